"""Ranges of time that are complete although earlier tuples may be missing.

Punctuation on a range of time, `[ts in [10, 50)]`, completes the windows that lie in it: they close before earlier
ones. Ranges of time alone are joined where they touch, with each other and with the time before a bound: after
`[ts < 15]` and `[ts in [15, 30)]` everything before 30 is complete.

>>> from millstream.algebra.punctuation.restriction import between
>>> from millstream.algebra.windower import tumbling
>>> known = Stretches("ts", "window_end", tumbling(10))
>>> apart = known.join(Punctuations.of([Pattern.of(ts=between(20, 40, True, False))]))
>>> known.ends(apart)
Punctuations([window_end (20, 40]])
>>> known.join(Punctuations.of([Pattern.of(ts=below(15)), Pattern.of(ts=between(15, 20, True, False))]))
Punctuations([ts < 15] [ts < 40])

Only punctuation counts, and not the progress of time, so that what is emitted is the same at any cut. If the output has
to be in the order of time, a range that does not reach back to the beginning closes nothing: time will.
"""

from __future__ import annotations

from math import floor
from typing import Any

from millstream.algebra.early import as_integer
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import NOTHING, Form, Restriction, below
from millstream.algebra.schema import NEVER
from millstream.algebra.window_patterns import (
    Stretch,
    ends_within,
    panes_within,
    stretch,
    stretch_of_panes,
    time_value,
    times_within,
)
from millstream.algebra.windower import Windower
from millstream.runtime.aggregate.bucket import upper_bounds

MOST = 256
"""The most stretches that are remembered; of more, those of the lowest times are forgotten."""


class Stretches:
    """Of windows over the attribute `time`, with their ends in `end`. `panes`: `time` has the ends of panes. `dated`:
    whether these two attributes are timestamps. `ordered`: windows close only in the order of time."""

    def __init__(
        self,
        time: str,
        end: str,
        windows: Windower,
        *,
        panes: bool = False,
        dated: tuple[bool, bool] = (False, False),
        ordered: bool = False,
    ) -> None:
        self._time, self._end, self._windows = time, end, windows
        self._panes, self._dated, self._ordered = panes, dated, ordered
        self._until = NEVER
        """Everything before it is complete."""
        self._apart: list[Stretch] = []
        """The stretches after it, ascending; no two of them touch."""

    def join(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations, each one on time alone together with the stretches that it touches."""
        bounds = [int(values.max()) for _, values in upper_bounds(punctuations, self._time)]
        highest = max(bounds, default=NEVER)
        if not punctuations.has_ranges(self._time) and not (self._apart and highest >= self._apart[0][0]):
            self._until = max(self._until, highest)
            return punctuations
        return Punctuations.of(map(self._joined, punctuations.patterns()), punctuations.progress)

    def _joined(self, pattern: Pattern) -> Pattern:
        own = pattern.get(self._time)
        if pattern.attributes != {self._time} or own.form is not Form.INTERVAL or own.hi is None:
            return pattern
        first, last = self._stretch(own) if own.starts else (NEVER, floor(as_integer(own.hi)))
        if last <= first:
            return pattern
        whole = self._merged(first, last)
        if whole[0] > NEVER:
            self._apart = sorted([*self._apart, whole])[-MOST:]
            within = panes_within if self._panes else times_within
            return Pattern.of({self._time: within(whole, self._dated[0])})
        self._until = whole[1]
        return pattern if whole == (first, last) else Pattern.of({self._time: below(self._value(whole[1]))})

    def _merged(self, first: int, last: int) -> Stretch:
        """Take out the stretches that one touches; return them as one, from NEVER on if it is not apart."""
        touched = [known for known in self._apart if known[0] <= last and known[1] >= first]
        self._apart = [known for known in self._apart if known not in touched]
        first, last = min([first, *(low for low, _ in touched)]), max([last, *(high for _, high in touched)])
        return (first, last) if first > self._until else (NEVER, max(last, self._until))

    def ends(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations with ranges of time as ranges of the ends of the windows that lie in them."""
        return punctuations.map_ranges(self._time, self._ends, self._end)

    def _ends(self, times: Restriction) -> Restriction:
        if self._ordered:
            return NOTHING
        return ends_within(self._stretch(times), self._windows, self._dated[1])

    def _stretch(self, times: Restriction) -> Stretch:
        return stretch_of_panes(times) if self._panes else stretch(times)

    def _value(self, time: int) -> Any:
        return time_value(time, self._dated[0])

    def to_value(self) -> tuple[int, list[Stretch]]:
        return self._until, list(self._apart)

    def restore(self, value: Any) -> None:
        self._until, self._apart = value[0], [(low, high) for low, high in value[1]]
