"""The punctuation index of one side of a join: for each waiting punctuation, how many stored tuples match it.

| | |
|---|---|
| build | new punctuations are compared with what is stored, once |
| leave | the counts of those that the leaving tuples match are lowered |
| release | what has a count of zero goes out; nothing that is stored is looked at |

A tuple that comes later matches no waiting punctuation, so counts never rise. A tuple may match several of them, which
are ranges or restrict other attributes, and counts for each: counted for the first one only, it would let the others
out too early.

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
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.runtime.operator.propagation import INSIDE, NO_PUNCTUATIONS, Withheld, comparable, fill

_ROW, _COUNT, _BOUND = "__row", "__count", "__bound"


class Counted(Withheld):
    """Those that wait, with their counts."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        super().__init__()
        self._counts: Integers = np.zeros(0, dtype=np.int64)

    @property
    def counts(self) -> dict[Pattern, int]:
        """What the index holds."""
        return dict(zip(self._waiting.patterns(), self._counts.tolist(), strict=True))

    def build(self, stored: pl.DataFrame) -> None:
        """Count the stored tuples for the new punctuations."""
        if len(self._fresh):
            self._counts = np.concatenate([self._counts, counted(self._fresh, stored)])
            self._waiting = Punctuations.concat([self._waiting, self._fresh])
            self._fresh = NO_PUNCTUATIONS

    def leave(self, rows: pl.DataFrame) -> None:
        """Tuples that were stored when the index was built are so no longer."""
        if len(self._waiting) and rows.height:
            self._counts -= counted(self._waiting, rows)

    def release(self) -> Punctuations:
        """Take out those that are indexed and that no stored tuple matches."""
        free = self._counts == 0
        if not free.any():
            return NO_PUNCTUATIONS
        released = self._waiting.keep(free)
        self._waiting, self._counts = self._waiting.keep(~free), self._counts[~free]
        return released


def counted(punctuations: Punctuations, rows: pl.DataFrame) -> Integers:
    """How many rows each punctuation matches."""
    found = np.zeros(len(punctuations), dtype=np.int64)
    fill(found, punctuations, rows, _group_counted, pl.Series.sum)
    return found


def _group_counted(group: Group, rows: pl.DataFrame) -> Integers:
    names = [name for name, op in group.shape if op == "="]
    bounds = [(name, op) for name, op in group.shape if op != "="]
    if not group.shape:
        return np.full(group.height, rows.height, dtype=np.int64)
    if len(bounds) > 1 or (bounds and not names):
        return np.array([pattern.match(rows).sum() for pattern in group.patterns()], dtype=np.int64)
    said = pl.DataFrame({**group.columns, _ROW: np.arange(group.height)})
    types = {name: column.dtype for name, column in group.columns.items()}
    stored = pl.DataFrame({name: comparable(rows.get_column(name), dtype) for name, dtype in types.items()})
    if not bounds:
        known = stored.join(said, on=names, how="semi").group_by(names).agg(pl.len().alias(_COUNT))
        found = said.join(known, on=names, how="left", maintain_order="left").get_column(_COUNT)
        return found.fill_null(0).cast(pl.Int64).to_numpy()
    name, op = bounds[0]
    met = said.rename({name: _BOUND}).join(stored, on=names)
    inside = met.filter(INSIDE[op](pl.col(_BOUND), pl.col(name))).get_column(_ROW).to_numpy()
    return np.bincount(inside, minlength=group.height).astype(np.int64)
