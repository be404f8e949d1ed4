"""A stretch of a split: some of its rows, which come after a prod in it, and before the next one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import polars as pl

from millstream.algebra.values import record
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.paged.split import Split, SplitRows
from millstream.ingest.placed_punctuations import PlacedPunctuations


@record("stretch")
class Stretch:
    """The rows of a split from `first` up to, not including, `last`, and so of its punctuations. The last stretch has
    the bad rows."""

    split: Split
    first: int
    last: int
    ends: bool
    told: tuple[int, int] = (0, 0)
    rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        split: Any = self.split  # a value: it can be hashed
        whole = _read(split, None if columns is None else tuple(columns))
        given, placed = whole.rows, None
        if isinstance(given, PunctuatedRows):
            given, placed = given.rows, PlacedPunctuations(given.punctuations, given.positions)
        assert isinstance(given, pl.DataFrame)
        rows: pl.DataFrame | PunctuatedRows = given.slice(self.first, self.last - self.first)
        if placed is not None and self.told[0] < self.told[1]:
            own = placed.slice(*self.told)
            rows = PunctuatedRows(rows, own.punctuations, own.positions - self.first)
        return SplitRows(rows, whole.bad) if self.ends else SplitRows(rows)


@lru_cache(maxsize=2)
def _read(split: Any, columns: tuple[str, ...] | None) -> SplitRows:
    read: SplitRows = split.read(columns)
    return read
