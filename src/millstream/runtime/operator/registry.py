"""The operators of plan nodes, by stem.

Planner and workers share only a stem: a node has its stem and the plain values that its operator needs, and an operator
registers for the stem.

>>> operator_for("window_join").__name__
'WindowJoin'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import TypeVar

import polars as pl

from millstream import runtime
from millstream.errors import PlanError
from millstream.runtime.operator.contract import Operator

Kind = TypeVar("Kind", bound=type[Operator])
_OPERATORS: dict[str, type[Operator]] = {}


@dataclass(frozen=True, slots=True)
class Site:
    """Where an operator runs: the static tables there, and the number of its shard among `shards`."""

    tables: Mapping[str, pl.DataFrame | None] = field(default_factory=dict)
    number: int = 0
    shards: int = 1


def carries_out(*stems: str) -> Callable[[Kind], Kind]:
    """Register an operator for the nodes with these stems."""

    def register(kind: Kind) -> Kind:
        _OPERATORS.update(dict.fromkeys(stems, kind))
        kind.stem = stems[0]
        return kind

    return register


def operator_for(stem: str) -> type[Operator]:
    """Return the operator that carries out nodes with this stem."""
    if stem not in _OPERATORS:
        _load()
    if stem not in _OPERATORS:
        raise PlanError("M3090", f"no operator carries out {stem}")
    return _OPERATORS[stem]


@cache
def _load() -> None:
    """Import every module of the package, so that all operators register."""
    for module in walk_packages(runtime.__path__, f"{runtime.__name__}."):
        import_module(module.name)
