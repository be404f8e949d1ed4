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

    def reach(self, at: int) -> None:
        """Advance to a time, unless it is past it."""
        ...

    @property
    def ahead(self) -> int:
        """Microseconds by which it is ahead of the machine's clock, which has gone back."""
        ...


class SystemClock:
    """The machine's clock. Where that goes back, time passes on from the highest that was reached (monotonic)."""

    def __init__(self) -> None:
        self._offset = -(1 << 62)
        """The most that the machine's clock has been ahead of the monotonic one."""

    def _read(self) -> tuple[int, int]:
        wall, passed = time.time_ns() // 1000, time.monotonic_ns() // 1000
        if wall - passed > self._offset:
            self._offset = wall - passed
        return wall, passed + self._offset

    def now(self) -> int:
        return self._read()[1]

    def reach(self, at: int) -> None:
        behind = at - self.now()
        self._offset += max(0, behind)

    @property
    def ahead(self) -> int:
        wall, now = self._read()
        return now - wall


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

    def reach(self, at: int) -> None:
        self._now = max(self._now, at)

    @property
    def ahead(self) -> int:
        return 0
