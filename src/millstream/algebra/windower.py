"""A family of windows: which of them hold a time, which are complete, and the panes that they consist of.

A window is named by its end, an integer in units of the timestamps, and holds the times from its start on and before
its end. One family has one window for each end; ends are `step` apart. Nothing else computes ends: what assigns tuples,
closes windows, pre-aggregates, prods or sheds asks a `Windower`. Another kind of windows is one more class of it.

| question | method |
|---|---|
| which windows hold a time | `assign`: the ends from the first to the last |
| which windows does a bound on time complete | `closed`: those up to this end |
| of which tumbling windows is each made | `panes`; no window starts or ends within a pane |
| which are open, between two ends | `ends`; of many times at once: `each` |

All divisions are floor divisions, hence correct before the epoch too. Methods take integers, arrays and series of
them, and expressions.

>>> windows = Hopping(60, 20)
>>> windows.assign(211), windows.closed(239), windows.start(240), windows.most, windows.panes
((220, 260), 220, 180, 3, Hopping(range=20, slide=20))
>>> Hopping(50, 20).assign(29), Hopping(5, 20).assign(3), Hopping(5, 20).holds(3), tumbling(20).assign(-1)
((40, 60), (20, 0), False, (0, 0))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import gcd
from typing import TypeVar

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Places
from millstream.algebra.values import record

Time = TypeVar("Time", int, Integers, pl.Series, pl.Expr)


class Windower(ABC):
    __slots__ = ()

    @property
    @abstractmethod
    def step(self) -> int:
        """The time from one end to the next."""

    @property
    @abstractmethod
    def length(self) -> int:
        """The length of the longest window."""

    @property
    @abstractmethod
    def panes(self) -> Windower:
        """The longest tumbling windows of which each window is a whole number; they may leave no gaps."""

    @abstractmethod
    def closed(self, bound: Time) -> Time:
        """Return the last end at or before a time: what no tuple older than the bound can change."""

    @abstractmethod
    def last(self, time: Time) -> Time:
        """Return the last end of the windows that start at or before a time."""

    @abstractmethod
    def start(self, end: Time) -> Time:
        """Return the start of the window with this end. Later windows do not start earlier."""

    @abstractmethod
    def spelled(self, length: Callable[[int], str]) -> str:
        """Return the windows as written; `length` writes a length of time."""

    of_one_length = True
    """True if all windows are equally long."""

    def closed_start(self, end: Time) -> Time:
        """Return the last start such that all windows that start by then end by `end`, one of the ends."""
        return self.start(end)

    def following(self, time: Time) -> Time:
        """Return the first end after a time."""
        return self.closed(time) + self.step

    def assign(self, time: Time) -> tuple[Time, Time]:
        """Return the first and the last end of the windows that hold a time; the last is lower if there is none."""
        return self.following(time), self.last(time)

    def ends(self, first: int, last: int) -> range:
        """Return the ends from one to another."""
        return range(first, last + 1, self.step)

    def each(self, first: Integers, last: Integers) -> tuple[Places, Integers]:
        """Return the ends from each first one to its last one, all in a row, with the place of their first one."""
        counts = np.maximum((last - first) // self.step + 1, 0)
        places = np.repeat(np.arange(len(first)), counts)
        nth = np.arange(len(places)) - (np.cumsum(counts) - counts)[places]
        return places, first[places] + nth * self.step

    @property
    def most(self) -> int:
        """The most windows that hold a time."""
        return -(-self.length // self.step)

    @property
    def tumbling(self) -> bool:
        """True if each time is in just one window."""
        return self.panes == self

    @property
    def gaps(self) -> bool:
        """True if some times are in no window."""
        return self.length < self.step

    def holds(self, time: pl.Expr) -> pl.Expr:
        """Return whether any window holds a time."""
        beyond = self.closed(0)  # the remainder needs one division and no product
        return (time - beyond if beyond else time) % self.step >= self.step - self.length


@record("hopping")
class Hopping(Windower):
    """Windows of one length, whose ends are the multiples of `slide`; `range` need not be one."""

    range: int
    slide: int

    @property
    def step(self) -> int:
        return self.slide

    @property
    def length(self) -> int:
        return self.range

    @property
    def panes(self) -> Hopping:
        return tumbling(gcd(self.range, self.slide))

    def closed(self, bound: Time) -> Time:
        return bound // self.slide * self.slide

    def last(self, time: Time) -> Time:
        return (time + self.range) // self.slide * self.slide

    def start(self, end: Time) -> Time:
        return end - self.range

    def spelled(self, length: Callable[[int], str]) -> str:
        return f"RANGE {length(self.range)} SLIDE {length(self.slide)}"


def tumbling(length: int) -> Hopping:
    """Return windows side by side."""
    return Hopping(length, length)


INSTANTS = tumbling(1)
"""Each time by itself: where there are no windows."""
