"""Stored tuples of a multi-join that may still be part of a result.

A result has one tuple of every input, all within their windows of the newest one. A later result with the stored tuple
u of input i contains some future tuple, and no tuple newer than `u.ts + W_i`. So input j can still deliver a partner
*for u* only if it has not closed u's key, and its bound on time (or that of the key, where punctuation is on key and
time) is not above `u.ts + W_i`. u is useful if

1. some other input can still deliver a partner (Lemma 6, and expiry by the slowest of the other inputs), and
2. every other input can, or holds a useful partner that is not newer than `u.ts + W_i` and not excluded by its time
   (`time_limits`: with `u.ts >= v.ts - 5` no v later than `u.ts + 5` is one) (purge-and-drop, Definition 2).

Condition 2 makes tuples depend on each other; the largest set of tuples that satisfies both conditions is kept. No
other tuple joins anything later, so the state does not depend on how the input was cut into steps. Since every stored
tuple can be part of a result, a punctuation of any input is emitted as early as possible (Lemmas 4, 7 and 8), and
"bring-forward", where the earliest of several inputs decides, needs no rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.schema import FOREVER

Bound = int | Places
"""The bound on time of an input, or of each of its keys by number, where tuples wait."""
Excluded = Callable[[int, int, Places, Places], Mask]
"""Mask of the tuples of input i, by place, that no tuple of input j from a time on joins, given a time for each."""


@dataclass(slots=True)
class Held:
    """Tuples of one input: the numbers of their keys, their timestamps, and a bit for each other input that has closed
    a tuple's key. `reach`: the most that a result may be newer than the tuple; None: any. `alive`: in its window."""

    codes: Places
    times: Places
    closed: Places | None
    reach: int | None
    alive: Mask

    def out_of_reach(self, j: int, bound: Bound, *, timely: bool) -> Mask | None:
        """Return the mask of the tuples for which input j delivers no partner any more; None if there are none. Not
        `timely`: of its bounds only the end counts."""
        if not len(self.times):
            return None
        out = None
        if not isinstance(bound, int):
            own = bound[self.codes]
            out = own == FOREVER
            if timely and self.reach is not None:
                out |= self.times < own - self.reach
        elif bound == FOREVER:
            out = np.ones(len(self.times), dtype=np.bool_)
        elif timely and self.reach is not None and bound - self.reach > int(self.times.min()):
            out = self.times < bound - self.reach
        if self.closed is not None:
            closed = (self.closed >> j & 1).astype(np.bool_)
            out = closed if out is None else out | closed
        return out if out is not None and out.any() else None

    def latest(self, places: Places, *, timely: bool) -> Places | int:
        """Return the latest timestamp that a partner of these tuples may have."""
        if self.reach is None or not timely:
            return FOREVER - 1
        return np.minimum(self.times[places], FOREVER - 1 - self.reach) + self.reach


def useful(
    sides: Sequence[Held], bounds: Sequence[Bound], count: int, excluded: Excluded, *, timely: bool
) -> list[Mask]:
    """Return for every input the mask of the tuples that may still be part of a result. Keys have numbers below
    `count`. Not `timely`: a result may have parts newer than its last one, so windows do not decide about condition 2.
    """
    without = _without_partners(sides, bounds, timely=True)
    alive = [side.alive.copy() for side in sides]
    for i, missing in enumerate(without):
        if len(missing) == len(sides) - 1:
            alive[i] &= ~np.logical_and.reduce(list(missing.values()))
    if not timely:
        without = _without_partners(sides, bounds, timely=False)
    first: dict[int, Places] = {}
    changed = any(without)
    while changed:
        changed = False
        for i, side in enumerate(sides):
            for j, out in without[i].items():
                places = np.flatnonzero(alive[i] & out)
                if not len(places):
                    continue
                if j not in first:
                    first[j] = _first_times(sides[j], alive[j], count)
                partner = first[j][side.codes[places]]
                gone = places[(partner > side.latest(places, timely=timely)) | excluded(i, j, places, partner)]
                if len(gone):
                    alive[i][gone] = False
                    first.pop(i, None)
                    changed = True
    return alive


def _without_partners(sides: Sequence[Held], bounds: Sequence[Bound], *, timely: bool) -> list[dict[int, Mask]]:
    """Return for every input, by other input, the mask of the tuples for which that one delivers no partner."""
    return [
        {
            j: out
            for j, bound in enumerate(bounds)
            if j != i and (out := side.out_of_reach(j, bound, timely=timely)) is not None
        }
        for i, side in enumerate(sides)
    ]


def _first_times(side: Held, alive: Mask, count: int) -> Places:
    """Return the lowest timestamp of every key; FOREVER for keys without tuples."""
    first = np.full(count, FOREVER, dtype=np.int64)
    np.minimum.at(first, side.codes[alive], side.times[alive])
    return first
