"""The nodes of a plan, one file per operator; base classes in `kinds`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules


@cache
def load() -> None:
    """Import every node file, so that `plan.NODES` has all nodes of the logical plan."""
    for module in iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
