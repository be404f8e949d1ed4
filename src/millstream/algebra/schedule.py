"""When a query prods itself: at marks of time, each with what it asks for then.

| | marks | asks for |
|---|---|---|
| a lead before the end of each window | `end - lead` | the window that ends there |
| a period | the multiples of the period | all open windows |

The prod of a mark stands before the first tuple, or punctuation, that takes time to the mark. If time passes several
marks at once, only windows that may have tuples are asked for, and a period counts once.

>>> lead = Schedule(slide=20, range=60, lead=4)
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
    """Lengths in units of the timestamps. `period`: 0 if there is a `lead`. `system`: by the system's clock instead of
    the time of the stream. `accuracy`: the lead changes so that early answers keep it, in percent; 0: it does not.
    `delay`: what aggregates below add to the time of a tuple at most. `several`: other streams have tuples, too."""

    slide: int = 1
    range: int = 1
    lead: int = 0
    period: int = 0
    system: bool = False
    accuracy: float = 0.0
    delay: int = 0
    several: bool = False

    @property
    def grid(self) -> Grid:
        """Where its marks are."""
        return Grid(self.period, 0) if self.period else Grid(self.slide, self.lead)

    def passed(self, before: int, now: int, newest: int) -> list[tuple[int, int | None]]:
        """The marks after a time, up to another, each with the end of the window that is asked for; None: of all.
        `newest`: the time of the newest tuple before."""
        if self.period:
            last = now // self.period * self.period
            return [(last, None)] if last > before else []
        first = self.grid.following(before) + self.lead
        last_end = min((now + self.lead) // self.slide * self.slide, self._last_end(newest, now))
        return [(end - self.lead, end) for end in range(first, last_end + 1, self.slide)[:MOST_MARKS]]

    def _last_end(self, newest: int, now: int) -> int:
        """The end of the last window that may have a tuple, if the newest one of the stream is at this time."""
        newest = max(newest + self.delay, now if self.several and now < FOREVER else newest)
        return (newest + self.range) // self.slide * self.slide


def lead_of(percent: Fraction, slide: int) -> int:
    """The lead if a window is asked for when a share of its last slide has passed.

    >>> lead_of(Fraction(80), 20), lead_of(Fraction(125, 1), 20), lead_of(Fraction(50), 5), aggressiveness(4, 20)
    (4, -5, 2, 20.0)
    """
    return slide - ceil(percent * slide / 100)


def aggressiveness(lead: int, slide: int) -> float:
    """P_Aggr: the lead before the end of a window, as a percentage of the slide.

    >>> aggressiveness(30, 120), aggressiveness(60, 120), aggressiveness(0, 120)
    (25.0, 50.0, 0.0)
    """
    return 100 * lead / slide


def coverage(lead: int, slide: int, range_: int) -> float:
    """The share of a window's time that an early answer has seen.

    >>> round(coverage(60, 120, 720), 4), coverage(5, 10, 10)
    (0.9167, 0.5)
    """
    return 1 - (aggressiveness(lead, slide) / 100) * slide / range_
