"""Partners of probing rows as stretches of the partner rows, sorted by key: counted before any pair is built.

Without a condition on time all pairs of equal keys are results, but for the residual predicate. With one (`Near`) the
pairs of equal keys may be many times the pairs near in time: tuples of a key grow with the step, and their pairs with
its square. So stretches that hold many more pairs than there are rows are cut by time, with two searches per
probing row, and pairs are built for what remains. Fewer pairs are built and compared, which costs less than a search.

>>> all_of = Stretches(np.array([0, 0]), np.array([3, 3]), None)
>>> [rows.tolist() for rows in all_of.pairs()]
[[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
>>> near = Near(np.array([10, 30]), np.array([9, 20, 30]), older=10, newer=0)
>>> [rows.tolist() for rows in near.cut(all_of).pairs()]
[[0, 1, 1], [0, 1, 2]]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.schema import FOREVER, NEVER
from millstream.runtime.join.multi.partners import by_code

Pairs = tuple[Places, Places]
"""Row numbers of pairs."""
CROWDED = 4
"""Pairs of equal keys, as a multiple of the rows, from which on partners are searched by time as well."""
AT_LEAST = 1 << 13
"""Number of pairs that cost as much as the calls of a search."""
MOST_PAIRS = 1 << 22
"""Largest number of pairs to build at once, unless one probing row has more: conditions may drop most of them."""


class Stretches:
    """For each probing row its first partner and their number, in `order`: the partner rows sorted by key, None if they
    are in this order. `by_row`: the rows of a stretch ascend."""

    __slots__ = ("by_row", "count", "first", "order")

    def __init__(self, first: Places, count: Places, order: Places | None, *, by_row: bool = True) -> None:
        self.first, self.count, self.order, self.by_row = first, count, order, by_row

    def pairs(self) -> Pairs:
        """Return the probing and partner rows of all pairs, by probing row, then by partner."""
        return self._pairs(0, len(self.count))

    def portions(self) -> Iterator[Pairs]:
        """Return the same in portions of at most `MOST_PAIRS` pairs; a probing row is in one portion."""
        if int(self.count.sum()) <= MOST_PAIRS:
            yield self.pairs()
            return
        sums = np.cumsum(self.count)
        edges = [0]
        while edges[-1] < len(sums):
            done = int(sums[edges[-1] - 1]) if edges[-1] else 0
            edges.append(max(edges[-1] + 1, int(np.searchsorted(sums, done + MOST_PAIRS, side="right"))))
        for start, stop in pairwise(edges):
            yield self._pairs(start, stop)

    def _pairs(self, start: int, stop: int) -> Pairs:
        first, count = self.first[start:stop], self.count[start:stop]
        probing = np.repeat(np.arange(start, stop), count)
        shift = first - (np.cumsum(count) - count)
        places = np.arange(len(probing)) + np.repeat(shift, count)
        partners = places if self.order is None else self.order[places]
        if self.by_row or not len(partners):
            return probing, partners
        width = int(partners.max()) + 1
        both = np.sort(probing * width + partners)
        return both // width, both % width


class Near:
    """A condition on the times of a pair: the partner is at most `older` older and `newer` newer than the probing row;
    None: any."""

    __slots__ = ("_newer", "_older", "_probing", "_times")

    def __init__(self, probing: Places, times: Places, older: int | None, newer: int | None) -> None:
        self._probing, self._times = probing, times
        self._older, self._newer = (None if reach is None or reach > FOREVER else reach for reach in (older, newer))

    @property
    def most(self) -> int:
        """Number of pairs up to which it costs less to build and compare all of them."""
        return AT_LEAST + CROWDED * (len(self._probing) + len(self._times))

    def cut(self, stretches: Stretches) -> Stretches:
        """Return the stretches of the partners near in time."""
        rows, order, times = len(self._times), stretches.order, self._times
        hit = np.flatnonzero(stretches.count)
        in_order = bool((times[1:] >= times[:-1]).all())
        if in_order:
            hit = hit[self._reaches_too_far(stretches, hit)]
            if not len(hit):
                return stretches
        first = stretches.first[hit]
        last = first + stretches.count[hit]
        # A place is numbered by the start of its stretch, then by its row's place in time, so one search finds it.
        starts = np.zeros(rows + 1, dtype=np.int64)
        starts[first] = first
        starts[last] = last
        starts = np.maximum.accumulate(starts[:rows])
        if in_order:
            joint = starts * rows + (np.arange(rows) if order is None else order)
        else:
            by_time = np.argsort(times, kind="stable")
            times = times[by_time]
            place = np.empty(rows, dtype=np.int64)
            place[by_time] = np.arange(rows)
            joint = np.sort(starts * rows + (place if order is None else place[order]))
            order = by_time[joint - starts * rows]
        low, high = self._limits(hit)
        # Limits that ascend are found several times as fast.
        turn = by_code(first, rows)
        begin, end = first, last
        if low is not None:
            begin = _search(joint, first * rows + np.searchsorted(times, low), turn)
        if high is not None:
            end = _search(joint, first * rows + np.searchsorted(times, high, side="right"), turn)
        firsts, counts = stretches.first.copy(), stretches.count.copy()
        firsts[hit], counts[hit] = begin, np.maximum(end - begin, 0)
        return Stretches(firsts, counts, order, by_row=in_order)

    def _limits(self, probing: Places) -> tuple[Places | None, Places | None]:
        """Return the lowest and the highest time of the partners of these probing rows; None: any."""
        times, low, high = self._probing[probing], None, None
        if self._older is not None:
            low = np.maximum(times, NEVER + self._older) - self._older
        if self._newer is not None:
            high = np.minimum(times, FOREVER - self._newer) + self._newer
        return low, high

    def _reaches_too_far(self, stretches: Stretches, probing: Places) -> Mask:
        """Return the mask of the probing rows, none without partners, of which some partner is not near. Partners are
        in order of time."""
        ends = stretches.first[probing], stretches.first[probing] + stretches.count[probing] - 1
        oldest, newest = (
            self._times[places if stretches.order is None else stretches.order[places]] for places in ends
        )
        low, high = self._limits(probing)
        far = np.zeros(len(probing), dtype=np.bool_) if low is None else oldest < low
        return far if high is None else far | (newest > high)


def _search(joint: Places, limits: Places, turn: Places) -> Places:
    """Search for the limits in this order of them."""
    found = np.empty(len(limits), dtype=np.int64)
    found[turn] = np.searchsorted(joint, limits[turn])
    return found


def by_number(partner: Places, probe: Places, count: int) -> Stretches:
    """Return the stretches of partners with equal numbers, all below `count`."""
    counts = np.bincount(partner, minlength=count)
    first = np.cumsum(counts) - counts
    return Stretches(first[probe], counts[probe], by_code(partner, count))
