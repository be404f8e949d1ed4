"""The segments of a state table in a store: what to write, and which of them to merge.

A store holds each segment as it was last put, under its key, and beside it the places of the rows that have died since:
tombstones, counted from the segment's first row when it was put. A table makes these changes:

| | |
|---|---|
| put | write the segment in full; it replaces a segment of the same key and deletes its tombstones |
| gone | add these places to the key's tombstones; each place is added once |
| dropped | delete the segment and its tombstones |

Keys ascend in order of arrival. A key is put again if more than half of its stored rows have died, or if the segments
after it are merged into it; so tombstones never outnumber the rows alive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Mask

Places = npt.NDArray[np.uint32]
GROWTH = 4.0
"""A merge at the end is good enough if its result is at least this many times its largest part."""


@dataclass(slots=True)
class Changes:
    """The changes to write to a store. A key is in one of the three at most."""

    put: dict[int, pl.DataFrame] = field(default_factory=dict)
    gone: dict[int, Places] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.put or self.gone or self.dropped)


class Journal:
    """The segments of a store and their changes since the last `take`. Its size is proportional to the table's, however
    rarely changes are taken."""

    def __init__(self) -> None:
        self._stored: dict[int, int] = {}
        """Number of rows of each segment in the store."""
        self._alive: dict[int, Places] = {}
        """The places of the rows alive, for segments that have lost some."""
        self._fresh: set[int] = set()
        self._gone: dict[int, list[Places]] = {}
        self._dropped: set[int] = set()

    def know(self, key: int, height: int, alive: Places | None = None) -> None:
        """Record that a segment is in the store, with these rows alive (all by default)."""
        self._stored[key] = height
        if alive is not None:
            self._alive[key] = alive

    def put(self, key: int) -> None:
        """Record that a segment is new or has to be written anew."""
        self._fresh.add(key)
        self._forget(key)

    def tear(self, key: int, kept: Mask) -> None:
        """Record that the rows of a segment outside the mask have died."""
        if key not in self._fresh:
            places = self._places(key)
            self._lose(key, places[~kept], places[kept])

    def cut(self, key: int, count: int) -> None:
        """Record that the first rows of a segment have died."""
        if key not in self._fresh:
            places = self._places(key)
            self._lose(key, places[:count].copy(), places[count:])

    def drop(self, key: int) -> None:
        self._fresh.discard(key)
        self._forget(key)
        if self._stored.pop(key, None) is not None:
            self._dropped.add(key)

    def take(self, segments: Mapping[int, pl.DataFrame]) -> Changes:
        """Return the changes since the last call; they count as stored from now on."""
        changes = Changes(
            {key: segments[key] for key in sorted(self._fresh)},
            {key: parts[0] if len(parts) == 1 else np.concatenate(parts) for key, parts in self._gone.items()},
            self._dropped,
        )
        self._stored |= {key: segment.height for key, segment in changes.put.items()}
        self._fresh, self._gone, self._dropped = set(), {}, set()
        return changes

    def _places(self, key: int) -> Places:
        alive = self._alive.get(key)
        return np.arange(self._stored[key], dtype=np.uint32) if alive is None else alive

    def _lose(self, key: int, dead: Places, alive: Places) -> None:
        if 2 * len(alive) < self._stored[key]:
            self.put(key)
        else:
            self._alive[key] = alive
            self._gone.setdefault(key, []).append(dead)

    def _forget(self, key: int) -> None:
        self._alive.pop(key, None)
        self._gone.pop(key, None)


def to_merge(heights: Sequence[int]) -> tuple[int, int]:
    """Return the adjacent segments to merge, given the heights of two or more: the first, and the one after the last.

    The result is at least twice as large as its largest part, so a row is rewritten only when its segment doubles; the
    larger this ratio, the better. The end is tried first, since small segments arrive there. If no run qualifies, which
    takes very uneven heights, the two segments that cost least are merged.

    >>> to_merge([900, 30, 30, 2, 30, 30])
    (1, 6)
    >>> to_merge([900, 3, 4, 500, 200])
    (1, 3)
    """
    count = len(heights)
    growth, first = _best_start(heights, count)
    if growth >= GROWTH:
        return first, count
    growth, first, end = max((*_best_start(heights, end), end) for end in range(2, count + 1))
    if growth >= 2:
        return first, end
    sums = [a + b for a, b in pairwise(heights)]
    cheapest = sums.index(min(sums))
    return cheapest, cheapest + 2


def _best_start(heights: Sequence[int], end: int) -> tuple[float, int]:
    """Return the highest ratio of a run that ends before `end` to its largest part, and the start of that run."""
    best, first = 1.0, end - 1
    total = largest = heights[end - 1]
    for at in range(end - 2, -1, -1):
        height = heights[at]
        total += height
        largest = max(largest, height)
        if total > best * largest:
            best, first = total / largest, at
    return best, first
