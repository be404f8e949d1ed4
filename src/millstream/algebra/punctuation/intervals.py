"""Sets of integers as sorted, disjoint, closed intervals; adjacent intervals are merged.

>>> Intervals().add(np.array([5, 3, 9])).add(np.array([4]))
Intervals([3, 5], [9, 9])
"""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask

_NONE: Integers = np.empty(0, dtype=np.int64)


class Intervals:
    """Immutable; `lows[i] <= highs[i]` and `highs[i] + 1 < lows[i + 1]`."""

    __slots__ = ("highs", "lows")

    def __init__(self, lows: Integers = _NONE, highs: Integers = _NONE) -> None:
        self.lows, self.highs = lows, highs

    def __len__(self) -> int:
        return len(self.lows)

    def __repr__(self) -> str:
        return f"Intervals({', '.join(f'[{lo}, {hi}]' for lo, hi in zip(self.lows, self.highs, strict=True))})"

    def add(self, values: Integers) -> Intervals:
        """Add values."""
        if not len(values):
            return self
        if len(self.lows) == len(values) == 1 and values[0] > self.highs[0] and values[0] - 1 == self.highs[0]:
            return Intervals(self.lows, values)  # the next integer, as keys often are
        lows = np.concatenate([self.lows, values])
        highs = np.concatenate([self.highs, values])
        order = np.argsort(lows, kind="stable")
        lows, highs = lows[order], np.maximum.accumulate(highs[order])
        # highs + 1 could overflow; lows - 1 cannot where the first comparison holds.
        starts = np.concatenate([[True], (lows[1:] > highs[:-1]) & (lows[1:] - 1 > highs[:-1])])
        ends = np.concatenate([starts[1:], [True]])
        return Intervals(lows[starts], highs[ends])

    def contains(self, values: Integers) -> Mask:
        if not len(self.lows):
            return np.zeros(len(values), dtype=np.bool_)
        place = np.searchsorted(self.lows, values, side="right") - 1
        inside: Mask = (place >= 0) & (values <= self.highs[place])
        return inside

    def match(self, column: pl.Series) -> Mask:
        """Mask of the values of a column that are members; fractions are not."""
        if column.dtype.is_integer():
            if not column.null_count():
                return self.contains(column.to_numpy())
            known: Mask = column.is_not_null().to_numpy()
            return self.contains(column.fill_null(0).to_numpy()) & known
        if column.dtype.is_float():
            whole = column.cast(pl.Int64, strict=False)
            exact: Mask = (column == whole).fill_null(False).to_numpy()
            return self.match(whole) & exact
        return np.zeros(column.len(), dtype=np.bool_)

    def values(self) -> Integers:
        """All members, ascending.

        >>> Intervals().add(np.array([5, 4, 9])).values().tolist()
        [4, 5, 9]
        """
        counts = self.highs - self.lows + 1
        starts = np.repeat(self.lows - np.cumsum(counts) + counts, counts)
        members: Integers = starts + np.arange(len(starts), dtype=np.int64)
        return members

    def keep(self, within: Mask) -> Intervals:
        return Intervals(self.lows[within], self.highs[within])


def first_of_each(values: Integers) -> Mask:
    """Mask of the first occurrence of each value.

    >>> first_of_each(np.array([5, 3, 5, 3, 4])).tolist()
    [True, True, False, False, True]
    """
    first = np.zeros(len(values), dtype=np.bool_)
    first[np.unique(values, return_index=True)[1]] = True
    return first
