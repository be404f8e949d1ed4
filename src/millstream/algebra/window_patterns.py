"""Windows in terms of times: the times that belong to no other windows, and the windows that lie in a range of time.

Windows that are not wanted are the tuples, or the panes, that belong to no other window.

A tuple may be omitted if the ends of all windows that hold it match the restriction.

>>> from millstream.algebra.punctuation.restriction import above, below, equal
>>> from millstream.algebra.windower import Hopping, tumbling
>>> tens, overlapping = tumbling(10), Hopping(20, 10)
>>> [str(times_of(r, tens)) for r in (below(30), below(30, closed=True), above(30), above(30, closed=True))]
['< 20', '< 30', '>= 30', '>= 20']
>>> [str(times_of(equal(30), each)) for each in (tens, overlapping)], str(times_of(below(30, closed=True), overlapping))
(['[20, 30)', '∅'], '< 20')

Panes do not cross the ends of windows, so all instants of a pane are in the same windows.

>>> str(panes_of(below(30, closed=True), overlapping)), str(panes_of(above(30), overlapping))
('<= 20', '> 30')

A range of time, such as `[10, 50)`, holds the windows all of whose instants lie in it. Their ends are written as the
range beyond the last end before them.

>>> str(ends_within(stretch(between(10, 50, True, False)), overlapping)), str(ends_within((10, 29), overlapping))
('(20, 50]', '∅')
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil, floor
from typing import Any

from millstream.algebra.early import as_integer
from millstream.algebra.punctuation.restriction import NOTHING, Form, Restriction, between
from millstream.algebra.schema import FOREVER, NEVER
from millstream.algebra.types import micros
from millstream.algebra.windower import Windower

Stretch = tuple[int, int]
"""The instants from the first time on and before the second; FOREVER: without an end."""


def times_of(ends: Restriction, windows: Windower) -> Restriction:
    """Return the times of the tuples all of whose windows have ends that match; `∅` if none is known."""
    if ends.form is Form.ONE_OF and ends.is_value:
        lo = hi = ends.values[0]
        lo_closed = hi_closed = True
    elif ends.form is Form.INTERVAL:
        lo, lo_closed, hi, hi_closed = ends.lo, ends.lo_closed, ends.hi, ends.hi_closed
    else:
        return NOTHING
    dated = isinstance(hi if lo is None else lo, datetime)
    first = None if lo is None else windows.closed(_integer(lo) - lo_closed)
    until = None if hi is None else windows.start(windows.following(_integer(hi) - (not hi_closed)))
    return between(time_value(first, dated), time_value(until, dated), True, False)


def panes_of(ends: Restriction, windows: Windower) -> Restriction:
    """Return the ends of the panes all of whose windows have ends that match; `∅` if none is known."""
    times = times_of(ends, windows)
    return times if times.is_empty else between(times.lo, times.hi, False, True)


def runs_of(ends: Restriction, windows: Windower) -> list[Restriction]:
    """Return a list of ends as ranges of successive windows; a value between two ends is the end of none.

    >>> from millstream.algebra.punctuation.restriction import one_of
    >>> from millstream.algebra.windower import tumbling
    >>> [str(run) for run in runs_of(one_of([15, 20, 22, 40]), tumbling(5))]
    ['[15, 20]', '40']
    """
    found: list[tuple[Any, Any]] = []
    for value in ends.values:
        if windows.closed(end := _integer(value)) == end:
            follows = bool(found) and windows.following(_integer(found[-1][1])) == end
            found[-1 if follows else len(found) :] = [(found[-1][0] if follows else value, value)]
    return [between(*run) for run in found]


def stretch(times: Restriction, tick: int = 0) -> Stretch:
    """Return the instants that a range surely has. `<= v` includes v only with a tick of 1, as `map_upper` has it."""
    low, high = as_integer(times.lo), as_integer(times.hi)
    first = ceil(low) if times.lo_closed else floor(low) + 1
    return first, FOREVER if high is None else floor(high) + (tick if times.hi_closed else 0)


def stretch_of_panes(ends: Restriction) -> Stretch:
    """Return the instants of the panes with these ends: those after the first end, up to the last one."""
    return stretch(between(ends.lo, ends.hi, True, ends.hi_closed))


def times_within(times: Stretch, dated: bool = False) -> Restriction:
    """Return a stretch as a restriction of time; `∅` if its ends are no times."""
    return _between(times, dated, True, False)


def panes_within(times: Stretch, dated: bool = False) -> Restriction:
    """Return a stretch as a restriction of the ends of panes."""
    return _between(times, dated, False, True)


def ends_within(times: Stretch, windows: Windower, dated: bool = False) -> Restriction:
    """Return the ends of the windows that lie in a stretch of time; `∅` if there is none."""
    first, last = times
    return _between((windows.last(first - 1), last if last == FOREVER else windows.closed(last)), dated, False, True)


def starts_of(ends: Restriction, windows: Windower) -> Restriction:
    """Return the starts of windows all of whose ends are in a range; `∅` if that is before any time."""
    first = windows.start(as_integer(ends.lo))
    last = FOREVER if ends.hi is None else windows.closed_start(as_integer(ends.hi))
    return _between((first, last), isinstance(ends.lo, datetime), ends.lo_closed, ends.hi_closed)


def _between(times: Stretch, dated: bool, low_closed: bool, high_closed: bool) -> Restriction:
    low, high = times
    if not NEVER < low < high:
        return NOTHING
    try:
        return between(
            time_value(low, dated), time_value(None if high == FOREVER else high, dated), low_closed, high_closed
        )
    except OverflowError:  # no such year
        return NOTHING


def _integer(value: Any) -> int:
    return micros(value) if isinstance(value, datetime) else int(value)


def time_value(time: int | None, dated: bool) -> Any:
    """Return a time as a value of its column: a timestamp, or the plain number."""
    return datetime(1970, 1, 1) + timedelta(microseconds=time) if dated and time is not None else time
