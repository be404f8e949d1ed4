"""Arriving rows, cut where time passes a mark: before the first tuple, or punctuation, that takes it there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from millstream.algebra.arrays import Integers
from millstream.algebra.schedule import Grid, Schedule
from millstream.algebra.schema import NEVER
from millstream.ingest.arrivals import Arrivals, CheckedRows
from millstream.ingest.placed_punctuations import NO_KEY, PlacedPunctuations, integers


class Cut(NamedTuple):
    """A place behind some rows and punctuations, the end of the window to ask for there (None: all windows), and the
    time of the mark."""

    rows: int
    punctuations: int
    end: int | None
    time: int


class Passing(NamedTuple):
    """A place behind some rows and punctuations, where time goes past a mark: from `known` to `reached`. `newest`: the
    time of the newest row before."""

    rows: int
    punctuations: int
    known: int
    newest: int
    reached: int


def passings(times: Integers, placed: PlacedPunctuations, time: str, before: int, grid: Grid) -> Iterator[Passing]:
    """Yield where time passes marks of a grid, in order. `before`: the time before these rows and punctuations; NEVER:
    it is not known, and the first of them may pass a mark."""
    keys = placed.keys(time)
    rows = np.maximum.accumulate(np.maximum(times, before)) if len(times) else times
    bounds = np.where(keys == NO_KEY, NEVER, keys // 2)
    bounds = np.maximum.accumulate(bounds) if len(bounds) else bounds
    positions = placed.positions
    while True:
        mark = NEVER + 1 if before == NEVER else grid.following(before)
        row, bound = int(rows.searchsorted(mark)), int(bounds.searchsorted(mark))
        by_bound = bound < len(bounds) and int(positions[bound]) <= row
        if not by_bound and row == len(rows):
            return
        place = int(positions[bound]) if by_bound else row
        told = bound if by_bound else int(positions.searchsorted(row, side="right"))
        newest = max([before, *newer(rows, place)])
        reached = int(bounds[bound] if by_bound else rows[row])
        yield Passing(place, told, max([newest, *newer(bounds, told)]), newest, reached)
        before = reached


def cuts(arrivals: Arrivals, time: str, before: int, schedule: Schedule) -> Iterator[Cut]:
    """Yield where marks are passed, in order; `before`: the time before these arrivals."""
    times = integers(arrivals.rows.get_column(time))
    if before == NEVER:  # no window has a tuple before the first one
        if not len(times):
            return
        before = int(times[0])
    for each in passings(times, arrivals.placed, time, before, schedule.grid):
        for mark, end in schedule.passed(each.known, each.reached, each.newest):
            yield Cut(each.rows, each.punctuations, end, mark)


def pieces(arrivals: Arrivals, found: list[Cut]) -> Iterator[tuple[CheckedRows, list[Cut]]]:
    """Yield the arrivals up to each place, with the cuts there."""
    row = told = 0
    bad = arrivals.bad
    for place in [*dict.fromkeys((cut.rows, cut.punctuations) for cut in found), None]:
        end, last = place if place is not None else (arrivals.rows.height, len(arrivals.placed))
        placed = arrivals.placed.slice(told, last)
        moved = PlacedPunctuations(placed.punctuations, placed.positions - row)
        at = [] if place is None else [cut for cut in found if cut[:2] == place]
        yield CheckedRows(arrivals.rows.slice(row, end - row), moved, bad), at
        row, told, bad = end, last, arrivals.bad.clear()


def newer(times: Integers, count: int) -> list[int]:
    """The last of the first rising times, if there is one."""
    return times[count - 1 : count].tolist() if count else []
