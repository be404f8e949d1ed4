"""Bucket: panes become windows, and punctuation on time becomes punctuation on the ends of windows.

| on | becomes |
|---|---|
| a pane | the windows that hold it; a pane, too, is named by its end |
| punctuation `time < v` or `time <= v` | `end <=` the last end at or before v; the rest unchanged |
| punctuation on a range of time (`stretches.py`) | the ends of the windows that lie in it |
| punctuation on a single time, or on several | dropped: it completes no window |
| punctuation without a restriction on time | unchanged: all windows of the groups it names |

>>> from millstream.algebra.windower import tumbling
>>> closed_end(239, tumbling(20)), closed_end(240, tumbling(20)), closed_end(-1, tumbling(20))
(220, 240, -20)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Places
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER
from millstream.algebra.windower import Windower
from millstream.errors import OutOfRange
from millstream.runtime.operator.frames import put, stack, take


def check_ends(low: int, high: int, range_: int) -> None:
    """Raise OutOfRange if windows of this length that hold the times from `low` to `high`, or panes, have a start or an
    end that is not a time."""
    if low - range_ <= NEVER or high + range_ >= FOREVER:
        time, side = (low, "start") if low - range_ <= NEVER else (high, "end")
        raise OutOfRange(f"the {side} of the window of time {time} is out of range")


def spread(panes: pl.DataFrame, name: str, windows: Windower) -> pl.DataFrame:
    """Return one row per window of each pane: the column `name` holds pane ends before, window ends after."""
    if windows.tumbling or not panes.height:
        return panes
    ends = integers(panes.get_column(name))
    check_ends(int(ends.min()), int(ends.max()), windows.length)
    if ends[0] == ends[-1] and (ends == ends[0]).all():
        held = windows.ends(*windows.assign(windows.panes.start(int(ends[0]))))
        if held:
            return put(stack([panes] * len(held)), pl.Series(name, np.repeat(np.array(held), len(ends))))
    rows, spread_ends = windows.each(*windows.assign(windows.panes.start(ends)))
    return put(take(panes, rows), pl.Series(name, spread_ends))


def closed_end(bound: int, windows: Windower) -> int:
    """Return the last window end that is complete if no tuple older than `bound` can arrive; NEVER and FOREVER stay."""
    if bound in (NEVER, FOREVER):
        return bound
    return max(windows.closed(bound), NEVER)


def close_windows(
    punctuations: Punctuations, time: str, windows: Windower, end: str, type_: pl.DataType
) -> Punctuations:
    """Translate bounds on the attribute `time` into bounds on the window end."""

    def last_end(bound: pl.Expr) -> pl.Expr:
        # Below the first end of a window it would wrap.
        return pl.when(bound >= NEVER + windows.step).then(windows.closed(bound))

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


def drop_idle_bounds(punctuations: Punctuations, time: str, windows: Windower, reached: int) -> Reaching:
    """Drop the bounds on `time` alone that complete no window end beyond `reached` or beyond an earlier bound.

    Most punctuations of a fine-grained stream pass no window end; finding them costs a division each.
    """
    bounds = upper_bounds(punctuations, time)
    alone = sum(len(values) for _, values in bounds) == len(punctuations)
    if alone and all(closed_end(int(values.max()), windows) <= reached for _, values in bounds):
        return Reaching(Punctuations.of((), punctuations.progress), reached, np.empty(0, dtype=np.int64))
    ends = np.full(len(punctuations), NEVER, dtype=np.int64)
    others = np.ones(len(punctuations), dtype=np.bool_)
    for positions, values in bounds:
        # Below the first end of a window it would wrap.
        ends[positions] = np.where(values < NEVER + windows.step, NEVER, windows.closed(values))
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
