"""Results of a multi-join on common keys, a whole step at a time, without partial results.

A step has new tuples of some inputs; the state holds the older ones. Each result of the step is found once, by its last
tuple. The tuples before it that are in their window form one stretch of every other input (`Partners`):

| | tuples of input j before the probing tuple x of input i | in their window |
|---|---|---|
| merging | all stored ones; new ones with a lower timestamp, or an equal one on a lower port | `ts >= x.ts - W_j` |
| on arrival | all stored ones; new ones of lower ports | RANGE `W_j`: `x.ts - W_j <= ts <= x.ts + W_i` |
| ROWS | likewise | the last n of its stream before x |

On arrival the timestamps alone decide about ranges, and the newest tuple of a result need not be the last to arrive:
whole results are checked again for every part to be within its own window of the newest. With a ROWS window the order
of arrival decides instead: x is the newest, and tuples with a later timestamp do not join it by a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.expression import Expression
from millstream.algebra.schema import TS
from millstream.algebra.window import Window
from millstream.runtime.expression.condition import Condition
from millstream.runtime.join.multi.partners import Partners, by_code, combined
from millstream.runtime.operator.frames import pick, stack, take
from millstream.runtime.operator.time_order import by_time

Parts = list[Places]
"""Results as row numbers, one array per input."""
MOST_RESULTS = 1 << 22
"""Largest number of results to build at once: conditions may drop most of them."""


@dataclass(slots=True)
class Arrivals:
    """One input in a step: stored tuples, then new ones, none with a NULL key. `seq`: their numbers in the stream, if
    it has a ROWS window. `before`: for each new tuple, the number of earlier tuples of other streams with one."""

    rows: pl.DataFrame
    new: pl.DataFrame | None
    held: int
    codes: Places
    times: Places
    seq: Places | None = None
    before: dict[int, Places] = field(default_factory=dict)

    @property
    def fresh(self) -> bool:
        return len(self.codes) > self.held


class MultiJoinKernel:
    """Finds the results of one step. `columns[i]`: the visible columns of input i."""

    def __init__(
        self, columns: Sequence[Sequence[str]], windows: Sequence[Window], residual: Expression | None, *, merges: bool
    ) -> None:
        self._columns, self._windows, self._merges = [list(own) for own in columns], tuple(windows), merges
        self._residual = None if residual is None else Condition(residual)
        self.by_rows = any(window.rows is not None for window in windows)
        ranged = any(window.range is not None for window in windows)
        self._checks_again = ranged and not merges and not self.by_rows and len(windows) > 2

    def results(self, inputs: Sequence[Arrivals], count: int) -> pl.DataFrame | None:
        """Return the results of a step in which keys have numbers below `count`."""
        wanted = _wanted(inputs, count)
        if wanted is None:
            return None
        indexes: dict[tuple[int, bool], Partners] = {}
        found = [part for i in range(len(inputs)) if inputs[i].fresh for part in self._of(i, inputs, wanted, indexes)]
        if len(found) > 1 and sum(len(parts[0]) for parts in found) <= MOST_RESULTS:
            found = [[np.concatenate(rows) for rows in zip(*found, strict=True)]]
        built = [frame for parts in found if (frame := self._built(inputs, parts)) is not None]
        if not built:
            return None
        rows = stack(built)
        return by_time(rows) if self._merges else rows

    def _of(
        self, i: int, inputs: Sequence[Arrivals], wanted: Mask, indexes: dict[tuple[int, bool], Partners]
    ) -> list[Parts]:
        """Return the results whose last tuple is a new one of input i."""
        own = inputs[i]
        probing = own.held + np.flatnonzero(wanted[own.codes[own.held :]])
        probing = probing[by_code(own.codes[probing], len(wanted))]
        stretches: dict[int, tuple[Places, Places]] = {}
        partners: dict[int, Partners] = {}
        for j in sorted((j for j in range(len(inputs)) if j != i), key=lambda j: len(inputs[j].codes)):
            if not len(probing):
                return []
            both = self._merges or j < i or not inputs[j].fresh
            index = indexes.get((j, both))
            if index is None:
                index = indexes[j, both] = self._index(inputs[j], j, wanted, both=both)
            partners[j] = index
            low, high = self._limits(i, j, own, probing, inputs[j])
            stretch = index.find(own.codes[probing], low, high)
            hit = stretch[1] > 0
            if not hit.all():
                probing, stretch = probing[hit], (stretch[0][hit], stretch[1][hit])
                stretches = {k: (first[hit], length[hit]) for k, (first, length) in stretches.items()}
            stretches[j] = stretch
        if not len(probing):
            return []
        by_arrival = np.argsort(probing)
        probing = probing[by_arrival]
        stretches = {j: (first[by_arrival], length[by_arrival]) for j, (first, length) in stretches.items()}
        results: list[Parts] = []
        for some, parts in _cut(probing, stretches):
            chosen, places = combined(list(parts.values()), some)
            rows = {i: chosen} | {j: partners[j].rows[at] for j, at in zip(parts, places, strict=True)}
            results.append([rows[j] for j in range(len(inputs))])
        return results

    def _index(self, own: Arrivals, j: int, wanted: Mask, *, both: bool) -> Partners:
        window, end = self._windows[j], len(own.codes) if both else own.held
        if window.rows is not None:
            assert own.seq is not None
            return Partners(own.codes[:end], own.seq[:end], wanted)
        if self._merges:
            return Partners(own.codes[:end], _turns(own), wanted)
        ranged = window.range is not None or (not self.by_rows and any(w.range is not None for w in self._windows))
        return Partners(own.codes[:end], own.times[:end] if ranged else None, wanted)

    def _limits(
        self, i: int, j: int, own: Arrivals, probing: Places, other: Arrivals
    ) -> tuple[Places | None, Places | None]:
        """Return the lower and upper (excluded) positions in input j of the partners of probing tuples of input i."""
        window = self._windows[j]
        if window.rows is not None:
            upto = own.before[j][probing - own.held]
            return upto - window.rows + 1, upto + 1
        times = own.times[probing]
        if self._merges:
            low = None if window.range is None else 2 * (times - window.range)
            return low, 2 * times + (2 if j < i else 1) if other.fresh else None
        low = None if window.range is None else times - window.range
        if self.by_rows:
            return low, None if window.range is None else times + 1
        reach = self._windows[i].range
        return low, None if reach is None else times + reach + 1

    def _built(self, inputs: Sequence[Arrivals], parts: Parts) -> pl.DataFrame | None:
        stamps = [own.times[rows] for own, rows in zip(inputs, parts, strict=True)]
        newest = np.maximum.reduce(stamps)
        order: Places | None = None
        if self._checks_again:
            live = np.ones(len(newest), dtype=np.bool_)
            for window, times in zip(self._windows, stamps, strict=True):
                if window.range is not None:
                    live &= newest - times <= window.range
            if not live.all():
                order = np.flatnonzero(live)
        elif self._merges and not (newest[1:] >= newest[:-1]).all():
            order = np.argsort(newest, kind="stable")
        if order is not None:
            parts, newest = [rows[order] for rows in parts], newest[order]
        if not len(newest):
            return None
        results = pl.DataFrame()
        for own, columns, rows in zip(inputs, self._columns, parts, strict=True):
            results.hstack(take(pick(own.rows, columns), rows).get_columns(), in_place=True)
        results.insert_column(results.width, pl.Series(TS, newest))
        if self._residual is not None:
            results = self._residual.filter(results)
        return results if results.height else None


def _wanted(inputs: Sequence[Arrivals], count: int) -> Mask | None:
    """Return the mask of the keys that are on every input, and new on some; None if there are none."""
    wanted = np.zeros(count, dtype=np.bool_)
    for own in inputs:
        wanted[own.codes[own.held :]] = True
    for own in inputs:
        there = np.zeros(count, dtype=np.bool_)
        there[own.codes] = True
        wanted &= there
    return wanted if wanted.any() else None


def _turns(own: Arrivals) -> Places:
    """Return positions in order of processing: twice the timestamp, plus one for new tuples, so that among equal times
    stored ones are first."""
    turns = 2 * own.times
    turns[own.held :] += 1
    return turns


def _cut(
    probing: Places, stretches: dict[int, tuple[Places, Places]]
) -> list[tuple[Places, dict[int, tuple[Places, Places]]]]:
    """Split the probing tuples, and their stretches, into portions of about `MOST_RESULTS` results at most."""
    totals = np.ones(len(probing), dtype=np.int64)
    for _, count in stretches.values():
        totals = totals * count
    sums = np.cumsum(totals)
    if sums[-1] <= MOST_RESULTS:
        return [(probing, stretches)]
    edges = [0, *(np.flatnonzero(np.diff(sums // MOST_RESULTS)) + 1).tolist(), len(probing)]
    return [
        (probing[a:b], {j: (first[a:b], count[a:b]) for j, (first, count) in stretches.items()})
        for a, b in pairwise(edges)
    ]
