"""Density and speed of traffic on a segment of a freeway at a time; integer arithmetic on whole columns.

Speed falls as congestion rises: in the rush hours, on some segments more than on others, and occasionally for half an
hour as if after an accident. Levels are in thousandths.
"""

from __future__ import annotations

import numpy as np

from millstream.algebra.arrays import Integers
from millstream.algebra.types import MICROS
from millstream.ingest.generators.draws import Draws

FULL = 1000
FREE_SPEED, SLOWEST, FASTEST = 60, 3, 80
_DAY = 86_400
_RUSHES = ((8 * 3600, 2 * 3600), (17 * 3600 + 1800, 9000))
"""The peak of each rush hour, and how long it builds up, in seconds."""
_DAYTIME = (6 * 3600, 22 * 3600)
_SLOT = 1800
_ACCIDENTS = 40
"""One in this many half hours on a segment has an accident."""
_BUSY_VOLUME = 15
"""Vehicles that a detector counts in twenty seconds of a rush hour."""


class Flow:
    def __init__(self, seed: int, congestion: int) -> None:
        """`congestion` is the highest level."""
        self._congestion = congestion
        self._weakness = Draws(seed, "weakness of a segment")
        self._accident = Draws(seed, "accident")

    def speed(self, segments: Integers, times: Integers) -> Integers:
        """Return the mean speed in miles per hour; segments count from 0, times are microseconds since the epoch."""
        seconds = times // MICROS
        weakness = FULL // 4 + self._weakness.below(segments, FULL * 3 // 4 + 1)
        slots = segments * (1 << 28) + seconds // _SLOT
        accident = np.where(self._accident.below(slots, _ACCIDENTS) == 0, FULL * 4 // 5, 0)
        level = np.maximum(_rush(seconds % _DAY) * weakness // FULL, accident) * self._congestion // FULL
        speed: Integers = FREE_SPEED - (FREE_SPEED - SLOWEST) * level // FULL
        return speed

    def volume(self, times: Integers, period: int) -> Integers:
        """Return the mean number of vehicles that pass a detector in a period."""
        seconds = times // MICROS % _DAY
        daytime = (seconds >= _DAYTIME[0]) & (seconds < _DAYTIME[1])
        busy = np.maximum(_rush(seconds), np.where(daytime, FULL // 2, FULL // 10))
        return busy * _BUSY_VOLUME * (period // 1000) // (FULL * 20_000)


def occupancy(volumes: Integers, speeds: Integers, period: int) -> Integers:
    """Return the share of time, in percent, that vehicles of some twenty-four feet are over a detector."""
    hourly = volumes * 3_600_000 // max(period // 1000, 1)
    share: Integers = np.minimum(hourly * 5 // (11 * speeds), 100)
    return share


def _rush(seconds: Integers) -> Integers:
    level = np.zeros_like(seconds)
    for peak, width in _RUSHES:
        np.maximum(level, FULL - np.abs(seconds - peak) * FULL // width, out=level)
    return level
