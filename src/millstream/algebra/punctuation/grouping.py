"""Patterns sorted into groups of one shape, and the odd ones that have none."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from millstream.algebra.arrays import Places
from millstream.algebra.punctuation.group import Group
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.values import value

_COLUMN_TYPES = (bool, int, float, str, datetime, date, timedelta)
_EXPAND = 1024


@value("punctuation_parts")
class Parts(NamedTuple):
    """The patterns of a batch by shape, and the odd ones with their positions."""

    groups: tuple[Group, ...]
    odd: tuple[tuple[int, Pattern], ...]


def by_shape(placed: Iterable[tuple[int, Pattern]]) -> Parts:
    """Patterns with their positions (ascending within a shape) as groups."""
    rows: dict[tuple[Any, ...], list[tuple[int, list[Any]]]] = {}
    odd: list[tuple[int, Pattern]] = []
    for position, pattern in placed:
        said = [(name, restriction.simple) for name, restriction in pattern.items]
        if any(known is None or not _fits_column(known[1]) for _, known in said):
            odd.append((position, pattern))
            continue
        # Values of different Python types never share a column, so that each comes back as it was.
        key = tuple((name, known[0], type(known[1])) for name, known in said if known is not None)
        rows.setdefault(key, []).append((position, [known[1] for _, known in said if known is not None]))
    groups: list[Group] = []
    for key, members in rows.items():
        positions: Places = np.array([position for position, _ in members], dtype=np.int64)
        columns = zip(*(values for _, values in members), strict=True)
        said_columns = {name: (op, pl.Series(values)) for (name, op, _), values in zip(key, columns, strict=False)}
        groups.append(Group.of(said_columns, positions))
    return Parts(tuple(groups), tuple(odd))


def _fits_column(value: Any) -> bool:
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 63
    return type(value) in _COLUMN_TYPES and getattr(value, "tzinfo", None) is None


def expand(pattern: Pattern) -> list[Pattern]:
    """The patterns with one value for each set; the pattern itself if there are no sets, or far too many values."""
    sets = {name: restriction.values for name, restriction in pattern.items if len(restriction.values) > 1}
    if not sets or np.prod([float(len(values)) for values in sets.values()]) > _EXPAND:
        return [pattern]
    rest = {name: restriction for name, restriction in pattern.items if name not in sets}
    return [
        Pattern.of({**rest, **{name: equal(value) for name, value in zip(sets, chosen, strict=True)}})
        for chosen in product(*sets.values())
    ]
