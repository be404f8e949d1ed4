"""Bucket: the windows and panes of a time, and those that a bound on time completes.

Windows end at the multiples of SLIDE; window `w` is `[(w + 1) * SLIDE - RANGE, (w + 1) * SLIDE)`: ids follow the end.
All divisions are floor divisions, hence correct before the epoch too. RANGE need not be a multiple of SLIDE; with
RANGE < SLIDE a time may lie in no window at all. Panes are tumbling windows of length gcd(RANGE, SLIDE): every window
is a whole number of panes, and a pane is named by its end. The functions take plain integers and Polars expressions.

| on | becomes |
|---|---|
| a tuple at time t | windows `t // SLIDE .. (t + RANGE) // SLIDE - 1`, pane end `(t // PANE + 1) * PANE` |
| a pane that ends at p | window ends `e` with `e - RANGE < p <= e` |
| punctuation `time < v` or `time <= v` | `end <= (v // SLIDE) * SLIDE`, never rounded up; the rest unchanged |
| punctuation on a range of time (`stretches.py`) | the ends of the windows that lie in it |
| punctuation on a single time, or on several | dropped: it completes no window |
| punctuation without a restriction on time | unchanged: all windows of the groups it names |

>>> window_ids(211, 60, 20), window_ids(29, 50, 20), window_ids(3, 5, 20)
((10, 12), (1, 2), (0, -1))
>>> closed_end(239, 20), closed_end(240, 20), closed_end(-1, 20)
(220, 240, -20)
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Places
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER
from millstream.errors import OutOfRange
from millstream.runtime.operator.frames import put, stack, take

Time = TypeVar("Time", int, pl.Expr)


def window_ids(time: Time, range_: int, slide: int) -> tuple[Time, Time]:
    """Return the first and the last window of a time; the last is below the first if there is none."""
    return time // slide, (time + range_) // slide - 1


def in_a_window(time: pl.Expr, range_: int, slide: int) -> pl.Expr:
    """Return whether a time lies in any window."""
    return time % slide >= slide - range_


def check_ends(low: int, high: int, range_: int) -> None:
    """Raise OutOfRange if windows that hold the times from `low` to `high`, or panes of this range, have a start or an
    end that is not a time."""
    if low - range_ <= NEVER or high + range_ >= FOREVER:
        time, side = (low, "start") if low - range_ <= NEVER else (high, "end")
        raise OutOfRange(f"the {side} of the window of time {time} is out of range")


def pane_end(time: Time, pane: int) -> Time:
    """Return the end of the pane that holds a time."""
    return (time // pane + 1) * pane


def ends_of_pane(end: Time, range_: int, slide: int) -> tuple[Time, Time]:
    """Return the first and the last end of the windows that hold a pane, given by its end.

    >>> ends_of_pane(220, 60, 20), ends_of_pane(5, 5, 20)
    ((220, 260), (20, 0))
    """
    first, last = window_ids(end - gcd(range_, slide), range_, slide)
    return (first + 1) * slide, (last + 1) * slide


def spread(panes: pl.DataFrame, name: str, range_: int, slide: int) -> pl.DataFrame:
    """Return one row per window of each pane: the column `name` holds pane ends before, window ends after."""
    if range_ == slide or not panes.height:
        return panes
    ends = integers(panes.get_column(name))
    check_ends(int(ends.min()), int(ends.max()), range_)
    pane = gcd(range_, slide)
    first = ((ends - pane) // slide + 1) * slide
    if ends[0] == ends[-1] and (ends == ends[0]).all():
        last = (int(ends[0]) - pane + range_) // slide * slide
        windows = np.arange(int(first[0]), last + 1, slide)
        if len(windows):
            return put(stack([panes] * len(windows)), pl.Series(name, np.repeat(windows, len(ends))))
    counts = np.maximum((ends - pane + range_) // slide * slide - first + slide, 0) // slide
    rows = np.repeat(np.arange(len(ends)), counts)
    nth = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    return put(take(panes, rows), pl.Series(name, first[rows] + nth * slide))


def closed_end(bound: int, slide: int) -> int:
    """Return the last window end that is complete if no tuple older than `bound` can arrive; NEVER and FOREVER stay."""
    if bound in (NEVER, FOREVER):
        return bound
    return max(bound // slide * slide, NEVER)


def close_windows(punctuations: Punctuations, time: str, slide: int, end: str, type_: pl.DataType) -> Punctuations:
    """Translate bounds on the attribute `time` into bounds on the window end."""

    def last_end(bound: pl.Expr) -> pl.Expr:
        # Below the first multiple of the slide the product would wrap; no window ends there.
        return pl.when(bound >= NEVER + slide).then(bound // slide * slide)

    return punctuations.map_upper(time, last_end, end, "<=", type_)


class Reaching(NamedTuple):
    """Punctuations that may close windows. `end`: these and earlier bounds on time alone close all windows that end by
    then. `ends`: the ascending ends that they reach, if all are bounds on time alone."""

    punctuations: Punctuations
    end: int
    ends: Integers | None


def upper_bounds(punctuations: Punctuations, time: str) -> list[tuple[Places, Integers]]:
    """Return the upper bounds on `time` alone, with their positions."""
    shapes = ((time, "<"),), ((time, "<="),)
    groups = [group for group in punctuations.parts.groups if group.shape in shapes]
    return [(group.positions, integers(group.columns[time])) for group in groups]


def drop_idle_bounds(punctuations: Punctuations, time: str, slide: int, reached: int) -> Reaching:
    """Drop the bounds on `time` alone that complete no window end beyond `reached` or beyond an earlier bound.

    Most punctuations of a fine-grained stream pass no window end; finding them costs a division each.
    """
    bounds = upper_bounds(punctuations, time)
    alone = sum(len(values) for _, values in bounds) == len(punctuations)
    if alone and all(closed_end(int(values.max()), slide) <= reached for _, values in bounds):
        return Reaching(Punctuations.of((), punctuations.progress), reached, np.empty(0, dtype=np.int64))
    ends = np.full(len(punctuations), NEVER, dtype=np.int64)
    others = np.ones(len(punctuations), dtype=np.bool_)
    for positions, values in bounds:
        # Below the first multiple of the slide the product would wrap; no window ends there.
        ends[positions] = np.where(values < NEVER + slide, NEVER, values // slide * slide)
        others[positions] = False
    steps = np.maximum.accumulate(np.concatenate(([reached], ends)))
    kept = others | (ends > steps[:-1])
    return Reaching(punctuations.keep(kept), int(steps[-1]), ends[kept] if alone else None)


def integers(times: pl.Series) -> Integers:
    """Return times, none of them NULL, as integers for window arithmetic: microseconds, or the plain number."""
    values = times.to_numpy()
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]", copy=False).view(np.int64)
    return np.floor(values).astype(np.int64, copy=False) if values.dtype.kind == "f" else values
