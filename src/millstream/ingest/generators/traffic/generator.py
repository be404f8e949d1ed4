"""Freeway traffic: detectors in the road, and probe vehicles that report their place and speed.

A freeway has segments of a mile, each with a detector per lane; a probe drives along one freeway repeatedly. Both
observe the same flow (`flow`), so that readings of one segment at one time agree up to noise.

| punctuation | on | pattern | position |
|---|---|---|---|
| `time` | both | `[ts < t]` | before the first event at or after t, for each multiple t of `punctuate_every` |
| `segment` | `sensors` | `[segment = s, ts < t]` | after the last reading of the segment before t |
| `probe` | `probes` | `[probe_id = p, ts = t]` | after each reading |
"""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.punctuation.group import Group
from millstream.algebra.punctuation.grouping import Parts
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER
from millstream.algebra.types import Type
from millstream.errors import OptionError
from millstream.ingest.generators.base import TIME, Generator
from millstream.ingest.generators.options import LAST_TIME
from millstream.ingest.generators.timeline import time_bounds
from millstream.ingest.generators.traffic.flow import FULL, Flow
from millstream.ingest.generators.traffic.options import TrafficOptions
from millstream.ingest.generators.traffic.readings import Detectors, Probes
from millstream.ingest.generators.traffic.schedule import Schedule
from millstream.ingest.placed_punctuations import PlacedPunctuations


class Traffic(Generator):
    _options: TrafficOptions

    def __init__(self, options: TrafficOptions) -> None:
        if options.punctuate_every < options.sensor_period:
            hint = "Choose a duration of at least sensor_period."
            raise OptionError("M6002", "option 'punctuate_every' cannot be shorter than sensor_period", hint=hint)
        self._schedule = Schedule(
            options.freeways * options.segments * options.detectors,
            options.sensor_period,
            options.probes,
            options.probe_period,
        )
        flow = Flow(options.seed, round(options.congestion * FULL))
        self._detectors = Detectors(options, self._schedule, flow)
        probes = Probes(options, self._schedule, flow)
        super().__init__(options, {"sensors": self._detectors.columns(), "probes": probes.columns()})

    def event_time(self, number: int) -> int:
        return self._options.start + self._schedule.time(number)

    def _keys(self, stream: str, first: int, last: int) -> Integers:
        """Return the keys of the rows, which are their numbers within the stream."""
        at = self._of(stream)
        return np.arange(self._schedule.split(first)[at], self._schedule.split(last)[at], dtype=np.int64)

    def _placed(self, stream: str, first: int, last: int, rows: pl.DataFrame, *, final: bool) -> PlacedPunctuations:
        # Punctuation after a reading precedes a bound before the next event, also if both have the same position among
        # the rows: so the order does not depend on the cut.
        made = []
        if "segment" in self._options.punctuation and stream == "sensors" and "segment" in rows.columns:
            made.append(self._segment_ends(self._keys(stream, first, last)))
        if "probe" in self._options.punctuation and stream == "probes" and "probe_id" in rows.columns:
            made.append(PlacedPunctuations.equalities(rows.select("probe_id", TIME), np.arange(1, rows.height + 1)))
        if "time" in self._options.punctuation:
            made.append(self._bounds(stream, first, last, final=final))
        return PlacedPunctuations.interleave(made)

    def _segment_ends(self, keys: Integers) -> PlacedPunctuations:
        """Return `[segment = s, ts < t]` after the last detector of s in the last round before t."""
        every, period = self._options.punctuate_every, self._options.sensor_period
        periods = self._schedule.detector_times(keys) // every
        last_round = (self._schedule.detector_times(keys) + period) // every > periods
        at = np.flatnonzero(last_round & ((keys + 1) % self._options.detectors == 0))
        if not len(at):
            return PlacedPunctuations.interleave([])
        bounds = pl.Series(self._options.start + (periods[at] + 1) * every).cast(Type.TIMESTAMP.polars)
        segments = pl.Series(self._detectors.segments(keys[at]) + 1)
        group = Group.of({"segment": ("=", segments), TIME: ("<", bounds)})
        return PlacedPunctuations(Punctuations(len(at), NEVER, parts=Parts((group,), ())), at + 1)

    def _bounds(self, stream: str, first: int, last: int, *, final: bool) -> PlacedPunctuations:
        """Return `[ts < t]` for each period; `final`: one more bound, above all times."""
        schedule, every, at = self._schedule, self._options.punctuate_every, self._of(stream)
        lowest = schedule.time(first - 1) // every + 1 if first else 1
        highest = schedule.time(last - 1) // every if last > first else 0
        times = [period * every for period in range(lowest, highest + 1)]
        places = [(schedule.detector_rows, schedule.probe_rows)[at](time) for time in times]
        if final:
            times.append(LAST_TIME - self._options.start)
            places.append(schedule.split(last)[at])
        bounds, positions = np.array(times, dtype=np.int64), np.array(places, dtype=np.int64)
        return time_bounds(bounds + self._options.start, positions - schedule.split(first)[at])

    @staticmethod
    def _of(stream: str) -> int:
        """Return the index of the stream's count in the result of `split`."""
        return 0 if stream == "sensors" else 1
