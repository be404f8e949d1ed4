"""Replay: rows are released as event time passes, at a given speed relative to the wall clock.

The anchor is the wall clock at the first batch and the event time of the first row. It is part of the offset, so that a
stream that was stopped and resumed catches up with the time in between.

>>> replay = Replay(Fraction(2), 1_000_000)
>>> replay.until([5_000_000, 100], 8_000_000)
6000100
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from millstream.algebra.schema import Schema
from millstream.algebra.types import MICROS
from millstream.errors import OptionError

Anchor = list[int]
"""The wall clock in microseconds, and the event time at that moment."""


@dataclass(frozen=True, slots=True)
class Replay:
    """`unit` is the number of units of event time in a second."""

    speed: Fraction
    unit: int

    @classmethod
    def of(cls, speed: Fraction | None, schema: Schema, stream: str) -> Replay | None:
        """Return the replay of a stream; None if its rows are released without delay."""
        if speed is None:
            return None
        if schema.time is None:
            message = f"option 'speed' needs event time, and stream '{stream}' has no time column"
            raise OptionError("M6002", message, hint="ORDER BY a column of the stream, or leave speed = max")
        return cls(speed, schema.unit)

    def until(self, anchor: Anchor, now: int) -> int:
        """Return the event time up to which rows are released, inclusive."""
        wall, event = anchor
        return event + int(max(now - wall, 0) * self.unit * self.speed / MICROS)
