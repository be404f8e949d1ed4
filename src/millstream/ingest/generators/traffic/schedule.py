"""Report times of detectors and probe vehicles, and the merge of their two sequences of readings into one of events.

All detectors report at the start of each detector period. Each probe reports once in a probe period; the reports are
evenly spread. Events are ordered by time; at equal times detectors precede probes. Times here are microseconds since
the start.
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
        """Return the number of detector readings before a time."""
        return -(-before // self.detector_period) * self.detectors

    def probe_rows(self, before: int) -> int:
        """Return the number of probe readings before a time."""
        rounds, rest = divmod(before, self.probe_period)
        return rounds * self.probes - (-rest * self.probes // self.probe_period)

    def split(self, events: int) -> tuple[int, int]:
        """Return the numbers of detector readings and of probe readings among the first `events` events."""
        # The k-th detector reading is among them if it has fewer than `events` events before it.
        detectors = bisect_left(range(events), events, key=self._detector_number) if events else 0
        return detectors, events - detectors

    def time(self, event: int) -> int:
        """Return the time of an event."""
        detectors, probes = self.split(event)
        if self._detector_number(detectors) == event:
            return self.detector_times(detectors)
        return self.probe_times(probes)

    def _detector_number(self, row: int) -> int:
        """Return the event number of a detector reading."""
        return row + self.probe_rows(self.detector_times(row))
