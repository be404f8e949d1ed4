"""When a query prods itself: at marks of time, each with what it asks for then.

| | marks | asks for |
|---|---|---|
| a lead before the end of each window | `end - lead` | the window that ends there |
| a period | the multiples of the period | all open windows |

The prod of a mark stands before the first tuple, or punctuation, that takes time to the mark. If time passes several
marks at once, only windows that may have tuples are asked for, and a period counts once.

>>> from millstream.algebra.windower import Hopping
>>> lead = Schedule(Hopping(60, 20), lead=4)
>>> lead.grid.following(211), lead.passed(217, 236, 217), lead.passed(211, 100_000, 211)
(216, [(236, 240)], [(216, 220), (236, 240), (256, 260)])
>>> Schedule(period=10).passed(5, 47, 5)
[(40, None)]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from millstream.algebra.schema import FOREVER
from millstream.algebra.values import value
from millstream.algebra.windower import INSTANTS, Windower

MOST_MARKS = 1_000
"""Windows asked for at once: if time leaps further, the others do not count."""


class Grid(NamedTuple):
    """Marks of time: the multiples of a step, each that much earlier."""

    step: int
    earlier: int

    def following(self, time: int) -> int:
        """The first mark after a time."""
        return ((time + self.earlier) // self.step + 1) * self.step - self.earlier


@value("prod_schedule")
@dataclass(frozen=True, slots=True)
class Schedule:
    """Lengths in units of the timestamps. `windows`: of the aggregate that answers, and when they end with a `lead`.
    `period`: 0 if there is a `lead`. `system`: by the system's clock instead of
    the time of the stream. `accuracy`: the lead changes so that early answers keep it, in percent; 0: it does not.
    `delay`: what aggregates below add to the time of a tuple at most. `several`: other streams have tuples, too."""

    windows: Windower = INSTANTS
    lead: int = 0
    period: int = 0
    system: bool = False
    accuracy: float = 0.0
    delay: int = 0
    several: bool = False

    @property
    def grid(self) -> Grid:
        """Where its marks are."""
        return Grid(self.period, 0) if self.period else Grid(self.windows.step, self.lead - self.windows.closed(0))

    def passed(self, before: int, now: int, newest: int) -> list[tuple[int, int | None]]:
        """The marks after a time, up to another, each with the end of the window that is asked for; None: of all.
        `newest`: the time of the newest tuple before."""
        if self.period:
            last = now // self.period * self.period
            return [(last, None)] if last > before else []
        windows, lead = self.windows, self.lead
        last = min(windows.closed(now + lead), self._last_end(newest, now))
        return [(end - lead, end) for end in windows.ends(windows.following(before + lead), last)[:MOST_MARKS]]

    def _last_end(self, newest: int, now: int) -> int:
        """The end of the last window that may have a tuple, if the newest one of the stream is at this time."""
        newest = max(newest + self.delay, now if self.several and now < FOREVER else newest)
        return self.windows.last(newest)


def lead_of(percent: Fraction, windows: Windower) -> int:
    """The lead if a window is asked for when a share of its last slide has passed.

    >>> from millstream.algebra.windower import tumbling
    >>> lead_of(Fraction(80), tumbling(20)), lead_of(Fraction(125, 1), tumbling(20)), lead_of(Fraction(50), tumbling(5))
    (4, -5, 2)
    """
    return windows.step - ceil(percent * windows.step / 100)
