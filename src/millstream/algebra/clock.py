"""Clocks: the system time is always read from a clock that the caller passes in.

>>> clock = VirtualClock()
>>> clock.advance(5_000_000)
>>> clock.now()
5000000
"""

from __future__ import annotations

import time
from typing import Protocol

from millstream.errors import OptionError


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


class SystemClock:
    """The machine's clock, except that it never runs backwards."""

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> int:
        self._last = max(self._last, time.time_ns() // 1000)
        return self._last


class VirtualClock:
    """Time that moves only when it is set; starts at 1970-01-01 by default."""

    def __init__(self, at: int = 0) -> None:
        self._now = at

    @property
    def at(self) -> int:
        return self._now

    @at.setter
    def at(self, micros: int) -> None:
        if micros < self._now:
            raise OptionError("M6020", "time does not go back", detail=f"It is {self._now} and was set to {micros}.")
        self._now = micros

    def now(self) -> int:
        return self._now

    def advance(self, micros: int) -> None:
        self.at = self._now + micros
