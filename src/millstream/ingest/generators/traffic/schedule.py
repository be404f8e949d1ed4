"""When detectors and probe vehicles report, and how the two sequences of readings make one sequence of events.

All detectors report at the start of each of their periods. Of the probes, each reports once in a period of theirs, one
after the other, evenly spread. Events are in order of time; at one time detectors come first. Times here are
microseconds since the start.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TypeVar

from millstream.algebra.arrays import Integers

Numbers = TypeVar("Numbers", int, Integers)


@dataclass(frozen=True, slots=True)
class Schedule:
    detectors: int
    detector_period: int
    probes: int
    probe_period: int

    def detector_times(self, rows: Numbers) -> Numbers:
        return rows // self.detectors * self.detector_period

    def probe_times(self, rows: Numbers) -> Numbers:
        rounds = rows // self.probes
        return rounds * self.probe_period + (rows - rounds * self.probes) * self.probe_period // self.probes

    def detector_rows(self, before: int) -> int:
        """How many detector readings come before a time."""
        return -(-before // self.detector_period) * self.detectors

    def probe_rows(self, before: int) -> int:
        """How many probe readings come before a time."""
        rounds, rest = divmod(before, self.probe_period)
        return rounds * self.probes - (-rest * self.probes // self.probe_period)

    def split(self, events: int) -> tuple[int, int]:
        """How many of the first so many events are detector readings, and how many probe readings."""
        # The k-th detector reading is among them if those before it and the probe readings before its time are fewer.
        detectors = bisect_left(range(events), events, key=self._detector_number) if events else 0
        return detectors, events - detectors

    def time(self, event: int) -> int:
        """The time of an event."""
        detectors, probes = self.split(event)
        if self._detector_number(detectors) == event:
            return self.detector_times(detectors)
        return self.probe_times(probes)

    def _detector_number(self, row: int) -> int:
        """The event that a detector reading is."""
        return row + self.probe_rows(self.detector_times(row))
