"""Windows that are not wanted, as the tuples, or the panes, that belong to no other window.

A tuple at time t is in the windows `[end - range, end)` with `t < end <= t + range`, whose ends are multiples of the
slide. It may be omitted if all these ends match the restriction.

>>> from millstream.algebra.punctuation.restriction import above, below, equal
>>> [str(times_of(r, 10, 10)) for r in (below(30), below(30, closed=True), above(30), above(30, closed=True))]
['< 20', '< 30', '>= 30', '>= 20']
>>> str(times_of(equal(30), 10, 10)), str(times_of(equal(30), 20, 10)), str(times_of(below(30, closed=True), 20, 10))
('[20, 30)', '∅', '< 20')

Panes do not cross the ends of windows, so all instants of a pane are in the same windows.

>>> str(panes_of(below(30, closed=True), 20, 10)), str(panes_of(above(30), 20, 10))
('<= 20', '> 30')
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from millstream.algebra.punctuation.restriction import NOTHING, Form, Restriction, between
from millstream.algebra.types import micros


def times_of(ends: Restriction, range_: int, slide: int) -> Restriction:
    """Return the times of the tuples all of whose windows have ends that match; `∅` if none is known."""
    if ends.form is Form.ONE_OF and ends.is_value:
        lo = hi = ends.values[0]
        lo_closed = hi_closed = True
    elif ends.form is Form.INTERVAL:
        lo, lo_closed, hi, hi_closed = ends.lo, ends.lo_closed, ends.hi, ends.hi_closed
    else:
        return NOTHING
    dated = isinstance(hi if lo is None else lo, datetime)
    first = None if lo is None else _first(_integer(lo), lo_closed, slide)
    last = None if hi is None else _last(_integer(hi), hi_closed, slide) + slide - range_
    return between(_value(first, dated), _value(last, dated), True, False)


def panes_of(ends: Restriction, range_: int, slide: int) -> Restriction:
    """Return the ends of the panes all of whose windows have ends that match; `∅` if none is known."""
    times = times_of(ends, range_, slide)
    return times if times.is_empty else between(times.lo, times.hi, False, True)


def _first(end: int, closed: bool, slide: int) -> int:
    """Return the lowest time whose first window ends at or after (closed), or after, `end`."""
    return (-(-end // slide) - 1) * slide if closed else end // slide * slide


def _last(end: int, closed: bool, slide: int) -> int:
    """Return the highest multiple of the slide that is at most (closed), or below, `end`."""
    return end // slide * slide if closed else (-(-end // slide) - 1) * slide


def _integer(value: Any) -> int:
    return micros(value) if isinstance(value, datetime) else int(value)


def _value(time: int | None, dated: bool) -> Any:
    return datetime(1970, 1, 1) + timedelta(microseconds=time) if dated and time is not None else time
