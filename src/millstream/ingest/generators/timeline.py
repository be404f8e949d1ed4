"""Events at a steady rate: their times, and the punctuations on time among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.types import MICROS, Type
from millstream.ingest.generators.base import TIME
from millstream.ingest.generators.options import LAST_TIME
from millstream.ingest.placed_punctuations import PlacedPunctuations


@dataclass(frozen=True, slots=True)
class Timeline:
    """Event n happens n / rate seconds after the start, rounded down to a microsecond."""

    start: int
    rate: int

    def time(self, number: int) -> int:
        return self.start + number * MICROS // self.rate

    def times(self, numbers: Integers) -> Integers:
        if MICROS % self.rate == 0:
            return numbers * (MICROS // self.rate) + self.start
        seconds = numbers // self.rate
        return seconds * MICROS + (numbers - seconds * self.rate) * MICROS // self.rate + self.start

    def bounds(self, first: int, last: int, every: int, *, final: bool) -> PlacedPunctuations:
        """Return `[ts < t]` before the first event at or after t, for each multiple t of `every` since the start; if no
        event lies between two multiples, only for the higher one. `final`: one more bound, above all times. Positions
        are event numbers."""
        earlier = min(first, 1)
        times = self.times(np.arange(first - earlier, last, dtype=np.int64)) - self.start
        return bounds_among(times, self.start, every, earlier, last - first if final else None).moved(first)


def bounds_among(times: Integers, start: int, every: int, earlier: int, end: int | None) -> PlacedPunctuations:
    """Return `[ts < t]` before the first event at or after t, for each multiple t of `every`, among events at these
    times since the start; the first `earlier` events precede position 0. `end`: one more bound there, above all
    times."""
    periods = times // every
    at = np.flatnonzero(np.diff(periods)) + 1
    bounds, places = start + periods[at] * every, at - earlier
    if end is not None:
        bounds, places = np.append(bounds, LAST_TIME), np.append(places, end)
    return time_bounds(bounds, places)


def time_bounds(bounds: Integers, positions: Integers) -> PlacedPunctuations:
    """Return `[ts < bound]` for each bound."""
    return PlacedPunctuations.below(TIME, pl.Series(bounds).cast(Type.TIMESTAMP.polars), positions)
