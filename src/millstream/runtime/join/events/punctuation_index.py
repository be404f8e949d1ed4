"""The punctuation index of one side of a join: the number of stored tuples that match each waiting punctuation.

| | |
|---|---|
| build | matches new punctuations with the stored tuples, once |
| leave | lowers the counts of the punctuations that leaving tuples match |
| release | releases punctuations with a count of zero, without reading the stored tuples |

A later tuple matches no waiting punctuation, so counts never rise. A tuple may match several punctuations (ranges, or
restrictions of other attributes) and counts for each of them. If it counted for the first only, the others would be
released too early.

>>> counted = Counted()
>>> counted.add(Punctuations.from_column("k", "=", pl.Series([1, 2])))
>>> counted.build(pl.DataFrame({"k": [2, 2, 3]}))
>>> counted.release(), len(counted)
(Punctuations([k = 1]), 1)
>>> counted.leave(pl.DataFrame({"k": [2, 2]}))
>>> counted.release(), len(counted)
(Punctuations([k = 2]), 0)
"""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.punctuation.group import Group
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.runtime.operator.propagation import INSIDE, NO_PUNCTUATIONS, Withheld, comparable, fill

_ROW, _COUNT, _BOUND = "__row", "__count", "__bound"


class Counted(Withheld):
    """Waiting punctuations with their counts."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        super().__init__()
        self._counts: Integers = np.zeros(0, dtype=np.int64)

    def build(self, stored: pl.DataFrame) -> None:
        """Count the stored tuples that match the new punctuations."""
        if len(self._fresh):
            self._counts = np.concatenate([self._counts, counted(self._fresh, stored)])
            self._waiting = Punctuations.concat([self._waiting, self._fresh])
            self._fresh = NO_PUNCTUATIONS

    def leave(self, rows: pl.DataFrame) -> None:
        """Subtract tuples that were stored when the index was built and now leave."""
        if len(self._waiting) and rows.height:
            self._counts -= counted(self._waiting, rows)

    def release(self) -> Punctuations:
        """Remove and return the indexed punctuations that no stored tuple matches."""
        free = self._counts == 0
        if not free.any():
            return NO_PUNCTUATIONS
        released = self._waiting.keep(free)
        self._waiting, self._counts = self._waiting.keep(~free), self._counts[~free]
        return released


def counted(punctuations: Punctuations, rows: pl.DataFrame) -> Integers:
    """Return the number of rows that each punctuation matches."""
    found = np.zeros(len(punctuations), dtype=np.int64)
    fill(found, punctuations, rows, _group_counted, pl.Series.sum)
    return found


def _group_counted(group: Group, rows: pl.DataFrame) -> Integers:
    names = [name for name, op in group.shape if op == "="]
    bounds = [(name, op) for name, op in group.shape if op != "="]
    if not group.shape:
        return np.full(group.height, rows.height, dtype=np.int64)
    if bounds and not names and len(bounds) == 1:
        return _inside(group.columns[bounds[0][0]], bounds[0][1], rows.get_column(bounds[0][0]))
    if len(bounds) > 1:
        return np.array([pattern.match(rows).sum() for pattern in group.patterns()], dtype=np.int64)
    patterns = pl.DataFrame({**group.columns, _ROW: np.arange(group.height)})
    types = {name: column.dtype for name, column in group.columns.items()}
    stored = pl.DataFrame({name: comparable(rows.get_column(name), dtype) for name, dtype in types.items()})
    if not bounds:
        known = stored.join(patterns, on=names, how="semi").group_by(names).agg(pl.len().alias(_COUNT))
        found = patterns.join(known, on=names, how="left", maintain_order="left").get_column(_COUNT)
        return found.fill_null(0).cast(pl.Int64).to_numpy()
    name, op = bounds[0]
    pairs = patterns.rename({name: _BOUND}).join(stored, on=names)
    inside = pairs.filter(INSIDE[op](pl.col(_BOUND), pl.col(name))).get_column(_ROW).to_numpy()
    return np.bincount(inside, minlength=group.height).astype(np.int64)


def _inside(bounds: pl.Series, op: str, column: pl.Series) -> Integers:
    """Return the number of values inside each bound."""
    values = comparable(column, bounds.dtype).drop_nulls().sort()
    below = values.search_sorted(bounds, side="left" if op in ("<", ">=") else "right").cast(pl.Int64).to_numpy()
    return below if op in ("<", "<=") else values.len() - below
