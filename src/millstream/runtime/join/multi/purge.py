"""Which stored tuples of an n-way join may still be part of a result.

A result has one tuple of every input, all within their windows of the newest one. A later result that contains the
stored tuple u of input i contains some tuple that is still to come, and nothing in it is newer than `u.ts + W_i`. So
input j can still bring a partner *for u* only if it has not closed u's key, and its bound on time (or that of the
key, where punctuation is on key and time) is not above `u.ts + W_i`. u is useful if

1. some other input can still bring a partner (Lemma 6, and expiry by the slowest of the other inputs), and
2. every other input can, or holds a useful partner that is not newer than `u.ts + W_i` (purge-and-drop, Definition 2).

What is useful by 2. depends on what else is useful; the largest set of tuples that satisfies both is kept. A tuple that
is not in it never joins anything later, so what is held does not depend on how the input was cut into steps. Since no
tuple stays that cannot be part of a result, a punctuation of any input goes out at the earliest moment at which it may
(Lemmas 4, 7 and 8), and that the earliest of several decides ("bring-forward") needs no rule of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.schema import FOREVER


@dataclass(slots=True)
class Held:
    """Tuples of one input: the numbers of their keys, their timestamps, and a bit for each other input that has closed
    a tuple's key. `reach` is how long after a tuple a result may end; None: any time. `alive`: still in its window."""

    codes: Places
    times: Places
    closed: Places | None
    reach: int | None
    alive: Mask

    def out_of_reach(self, j: int, bound: int, *, timely: bool) -> Mask | None:
        """For which tuples input j brings no partner any more; None if for none. Not `timely`: only an end counts."""
        limit = FOREVER if bound == FOREVER else None
        if limit is None and timely and self.reach is not None:
            limit = bound - self.reach
        made = None
        if limit == FOREVER:
            made = np.ones(len(self.times), dtype=np.bool_)
        elif limit is not None and limit > self.earliest:
            made = self.times < limit
        if self.closed is not None:
            shut = (self.closed >> j & 1).astype(np.bool_)
            made = shut if made is None else made | shut
        return made if made is not None and made.any() else None

    def latest(self, asked: Places, *, timely: bool) -> Places | int:
        """The latest timestamp that a partner of these tuples may have."""
        if self.reach is None or not timely:
            return FOREVER - 1
        return np.minimum(self.times[asked], FOREVER - 1 - self.reach) + self.reach

    @property
    def earliest(self) -> int:
        return int(self.times.min()) if len(self.times) else FOREVER


def useful(sides: Sequence[Held], bounds: Sequence[int], count: int, *, timely: bool) -> list[Mask]:
    """For every input, which tuples may still be part of a result; keys have numbers below `count`. Not `timely`: a
    result may have parts that are newer than its last one, so 2. cannot be told from times."""
    without = [
        {j: out for j, bound in enumerate(bounds) if j != i and (out := _out(side, j, bound, True)) is not None}
        for i, side in enumerate(sides)
    ]
    alive = [side.alive.copy() for side in sides]
    for i, missing in enumerate(without):
        if len(missing) == len(sides) - 1:
            alive[i] &= ~np.logical_and.reduce(list(missing.values()))
    if not timely:
        without = [
            {j: out for j, bound in enumerate(bounds) if j != i and (out := _out(side, j, bound, False)) is not None}
            for i, side in enumerate(sides)
        ]
    first: dict[int, Places] = {}
    changed = any(without)
    while changed:
        changed = False
        for i, side in enumerate(sides):
            for j, out in without[i].items():
                asked = np.flatnonzero(alive[i] & out)
                if not len(asked):
                    continue
                if j not in first:
                    first[j] = _first_times(sides[j], alive[j], count)
                partner = first[j][side.codes[asked]]
                gone = asked[partner > side.latest(asked, timely=timely)]
                if len(gone):
                    alive[i][gone] = False
                    first.pop(i, None)
                    changed = True
    return alive


def _out(side: Held, j: int, bound: int, timely: bool) -> Mask | None:
    return side.out_of_reach(j, bound, timely=timely) if len(side.times) else None


def _first_times(side: Held, alive: Mask, count: int) -> Places:
    """The lowest timestamp of every key, FOREVER for those that are not there."""
    made = np.full(count, FOREVER, dtype=np.int64)
    np.minimum.at(made, side.codes[alive], side.times[alive])
    return made
