"""Grouping by small integers: the key itself is the place of its group in an array.

| | |
|---|---|
| computes | the result of grouping by one integer key, or None if a key or a column does not fit |
| a key fits | one integer column without NULL whose span is at most `SPAN` times the row count, as of serial numbers |
| no key fits | up to `FEW` rows without fractions |
| a column fits | it has no NULL, and its operation has a dense form for its type (`algebra/aggregate/reduction.py`) |
| cost | a few nanoseconds a row and column, a fifth of the cost of hashing |

>>> from millstream.algebra.aggregate.reduction import SUM
>>> page = pl.DataFrame({"k": [7, 5, 7], "x": [1, 2, 3]})
>>> dense(page, Places.of(page, ["k"]), [Reduction("s", SUM, "x", pl.Int64())]).rows()
[(5, 2), (7, 4)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.aggregate.reduction import Reduction
from millstream.algebra.arrays import Integers
from millstream.runtime.operator.frames import beside

SPAN = 4
"""Most places per row: with more of them, scanning the array takes longer than hashing."""
FEW = 2_048
"""Up to this many rows without a key, calling Polars' query planner takes longer than the reduction."""


@dataclass(frozen=True, slots=True)
class Places:
    """The key of each row as a number from 0 up to `span`; `low` is the key at place 0. Without a name there is no
    key, and all rows have the same place."""

    name: str | None
    type: pl.DataType
    low: int
    span: int
    of_rows: Integers

    @classmethod
    def of(cls, page: pl.DataFrame, group: Sequence[str]) -> Places | None:
        """Return the places of a page's rows, or None if its key does not fit."""
        if not group and 0 < page.height <= FEW and not any(type_.is_float() for type_ in page.dtypes):
            return cls(None, pl.Int64(), 0, 1, np.zeros(page.height, dtype=np.int64))
        column = page.get_column(group[0]) if len(group) == 1 and page.height else None
        if column is None or not column.dtype.is_signed_integer() or column.null_count():
            return None
        keys = column.cast(pl.Int64).to_numpy()
        low = int(keys.min())
        span = int(keys.max()) - low + 1
        return cls(group[0], column.dtype, low, span, keys - low) if span <= SPAN * page.height else None

    def keys(self, places: Integers) -> list[pl.Series]:
        """Return the key at each of these places, if there is one."""
        return [] if self.name is None else [pl.Series(self.name, places + self.low).cast(self.type)]


def dense(page: pl.DataFrame, places: Places | None, reductions: Sequence[Reduction]) -> pl.DataFrame | None:
    """Return one row per key, in the order of keys, or None if a key or a column does not fit."""
    if places is None or (reduced := reduce(page, places.of_rows, places.span, reductions)) is None:
        return None
    used, columns = reduced
    return beside([*places.keys(used), *columns])


def reduce(
    page: pl.DataFrame, places: Integers, span: int, reductions: Sequence[Reduction]
) -> tuple[Integers, list[pl.Series]] | None:
    """Return the places that have rows, in order, and the reductions' results for each of them."""
    if not all(reduction.fits(page) for reduction in reductions):
        return None
    counts = np.bincount(places, minlength=span)
    used = np.flatnonzero(counts)
    columns = [pl.Series(r.name, r.dense(page, places, counts)[used]).cast(r.type) for r in reductions]
    return used, columns
