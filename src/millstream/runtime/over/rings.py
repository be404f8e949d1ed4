"""Rows of many partitions in a few arrays: each partition has a ring of its own, addressed by position.

A position is the number of a row in its partition. A ring has a power of two of slots, at least as many as the rows
that its partition holds; when it needs more it moves to the end of the arrays. What it leaves behind is garbage until
the rings are built anew.

>>> rings = Rings([np.dtype(np.int64)])
>>> rings.grow(2)
>>> ones = np.array([1])
>>> rings.reserve(ones, np.array([0]), np.array([0]), np.array([3]))
>>> rings.put(rings.slots(np.array([1, 1, 1]), np.array([0, 1, 2])), [np.array([7, 8, 9])])
>>> rings.columns[0][rings.slots(ones, np.array([2]))].tolist()
[9]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from millstream.algebra.arrays import Places
from millstream.runtime.over.scans import Values


class Rings:
    """`columns` are the arrays; `used` slots of them belong to rings, or did."""

    def __init__(self, dtypes: Sequence[np.dtype[Any]]) -> None:
        self.columns: list[Values] = [np.empty(0, dtype=dtype) for dtype in dtypes]
        self.used = 0
        self._offset = np.zeros(0, dtype=np.int64)
        self._capacity = np.zeros(0, dtype=np.int64)

    def grow(self, partitions: int) -> None:
        """Make room for this many partitions."""
        self._offset, self._capacity = extended(self._offset, partitions), extended(self._capacity, partitions)

    def slots(self, codes: Places, positions: Places) -> Places:
        """Return the slots of rows, given their partitions and positions."""
        return np.asarray(self._offset[codes] + (positions & (self._capacity[codes] - 1)))

    def put(self, slots: Places, values: Sequence[Values]) -> None:
        for column, own in zip(self.columns, values, strict=True):
            column[slots] = own

    def reserve(self, codes: Places, first: Places, stop: Places, needed: Places) -> None:
        """Make room for `needed` rows of each of these partitions; those from `first` to `stop` are kept."""
        small = needed > self._capacity[codes]
        if not small.any():
            return
        codes, first, kept = codes[small], first[small], np.maximum(stop - first, 0)[small]
        positions = spans(first, kept)
        owners = np.repeat(codes, kept)
        old = self.slots(owners, positions)
        room = 1 << np.ceil(np.log2(np.maximum(needed[small], 2))).astype(np.int64)
        ends = np.cumsum(room)
        self._offset[codes], self._capacity[codes] = self.used + ends - room, room
        self.used += int(ends[-1])
        if self.used > len(self.columns[0]):
            self.columns = [extended(column, 2 * self.used) for column in self.columns]
        new = self.slots(owners, positions)
        for column in self.columns:
            column[new] = column[old]

    def search(self, codes: Places, first: Places, stop: Places, since: Places) -> Places:
        """Return for each partition the first position from `first` to `stop` whose value in the first column, which
        ascends, is not below `since`."""
        times = self.columns[0]
        low, high = first.copy(), stop.copy()
        while (open_ := low < high).any():
            middle = (low + high) // 2
            below = np.zeros(len(low), dtype=np.bool_)
            below[open_] = times[self.slots(codes[open_], middle[open_])] < since[open_]
            low = np.where(below, middle + 1, low)
            high = np.where(open_ & ~below, middle, high)
        return np.asarray(low)


def spans(first: Places, lengths: Places) -> Places:
    """Return the numbers of all spans, one after the other.

    >>> spans(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    ends = np.cumsum(lengths)
    return np.asarray(np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - lengths), lengths))


def extended(values: Values, size: int) -> Values:
    """Return an array of at least this size, with zeros behind the values, or None behind objects."""
    if size <= len(values):
        return values
    made = (np.empty if values.dtype == object else np.zeros)(max(size, 2 * len(values), 16), values.dtype)
    made[: len(values)] = values
    return made
