"""Freeway traffic: detectors in the road, and probe vehicles that report their place and speed.

A freeway has segments of a mile, each with a detector per lane; a probe drives along one freeway repeatedly. Both
observe the same flow, so that readings of one segment at one time agree up to noise.

| punctuation | on | pattern | position |
|---|---|---|---|
| `time` | both | `[ts < t]` | before the first event at or after t, for each multiple t of `punctuate_every` |
| `segment` | `sensors` | `[segment = s, ts < t]` | after the last reading of the segment before t |
| `probe` | `probes` | `[probe_id = p, ts = t]` | after each reading |
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

import numpy as np
import polars as pl
from pydantic import Field

from millstream.algebra.arrays import Integers
from millstream.algebra.punctuation.group import Group
from millstream.algebra.punctuation.grouping import Parts
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER
from millstream.algebra.types import MICROS, Type, micros, parse_timestamp
from millstream.errors import OptionError
from millstream.ingest.generators.base import TIME, Column, Generator
from millstream.ingest.generators.draws import Draws
from millstream.ingest.generators.options import LAST_TIME, GeneratorOptions, Length, Moment, Names
from millstream.ingest.generators.timeline import time_bounds
from millstream.ingest.paged.generated import Generated
from millstream.ingest.placed_punctuations import PlacedPunctuations

Count = Annotated[int, Field(ge=1, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]


class TrafficOptions(GeneratorOptions):
    punctuations: ClassVar[frozenset[str]] = frozenset({"time", "segment", "probe"})

    start: Moment = Field(default=micros(parse_timestamp("2010-02-15")), description="event time of the first event")
    punctuation: Names = Field(default=frozenset({"time"}), description="some of time, segment, probe, or none")
    punctuate_every: Length = Field(
        default=60 * MICROS, description="event time between two punctuations of the kind time; at least sensor_period"
    )
    freeways: Count = Field(default=5, description="number of freeways")
    segments: Count = Field(default=10, description="segments of each freeway, a mile long")
    detectors: Count = Field(default=3, description="detectors on each segment")
    sensor_period: Length = Field(default=20 * MICROS, description="event time between two readings of a detector")
    probes: Count = Field(default=50, description="number of probe vehicles")
    probe_period: Length = Field(default=300 * MICROS, description="event time between two readings of a probe")
    congestion: Share = Field(default=0.5, description="highest density of traffic, from 0 (always free) to 1")
    faulty: Share = Field(default=0.0, description="share of detector readings whose speed is -1, evenly spread")


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
    """Density and speed of traffic on a segment at a time; integer arithmetic on whole columns.

    Speed falls as congestion rises: in the rush hours, on some segments more than on others, and occasionally for half
    an hour as if after an accident. Levels are in thousandths.
    """

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


Numbers = TypeVar("Numbers", int, Integers)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Report times of detectors and probe vehicles, and the merge of both sequences of readings into one of events.

    All detectors report at the start of each detector period. Each probe reports once in a probe period; the reports
    are evenly spread. Events are ordered by time; at equal times detectors precede probes. Times here are microseconds
    since the start.
    """

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


FAULT = -1
"""Speed reported by a detector that failed."""
_MILLION = 1_000_000
_FIRST_SENSOR = 1001
_NOISE = 12
"""Largest deviation of a reported speed, in miles per hour."""
_SLOW_PROBE, _FAST_PROBE = 40, 60


class Detectors:
    """Reading i belongs to detector i modulo their number; the detectors of a segment are adjacent."""

    def __init__(self, options: TrafficOptions, schedule: Schedule, flow: Flow) -> None:
        self._options, self._schedule, self._flow = options, schedule, flow
        self._faults = round(options.faulty * _MILLION)
        self._volume_noise, self._speed_noise = (
            Draws(options.seed, f"noise of {quantity}") for quantity in ("volume", "speed")
        )

    def columns(self) -> list[Column]:
        return [
            Column("sensor_id", Type.BIGINT, self._ids),
            *_place(self.segments, self._options.segments),
            Column("volume", Type.BIGINT, self._volumes),
            Column("speed", Type.BIGINT, self._shown_speeds),
            Column("occupancy", Type.BIGINT, self._occupancies),
            Column(TIME, Type.TIMESTAMP, self.times),
        ]

    def times(self, rows: Integers) -> Integers:
        return self._schedule.detector_times(rows) + self._options.start

    def segments(self, rows: Integers) -> Integers:
        """Return the segments, counted from 0."""
        return rows % self._schedule.detectors // self._options.detectors

    def _ids(self, rows: Integers) -> Integers:
        return rows % self._schedule.detectors + _FIRST_SENSOR

    def _volumes(self, rows: Integers) -> Integers:
        mean = self._flow.volume(self.times(rows), self._options.sensor_period)
        return np.maximum(mean + self._volume_noise.around(rows, FULL) * (mean + 2) // (2 * FULL), 0)

    def _speeds(self, rows: Integers) -> Integers:
        mean = self._flow.speed(self.segments(rows), self.times(rows))
        return _read(mean, self._speed_noise.around(rows, _NOISE))

    def _shown_speeds(self, rows: Integers) -> Integers:
        # Shifted by one each round, so that all detectors fail equally often.
        step = rows % self._schedule.detectors + rows // self._schedule.detectors
        failed = (step + 1) * self._faults // _MILLION > step * self._faults // _MILLION
        return np.where(failed, FAULT, self._speeds(rows))

    def _occupancies(self, rows: Integers) -> Integers:
        return occupancy(self._volumes(rows), self._speeds(rows), self._options.sensor_period)


class Probes:
    """Reading i belongs to probe i modulo their number."""

    def __init__(self, options: TrafficOptions, schedule: Schedule, flow: Flow) -> None:
        self._options, self._schedule, self._flow = options, schedule, flow
        self._freeway, self._mile, self._pace, self._noise = (
            Draws(options.seed, f"{quantity} of a probe") for quantity in ("freeway", "first mile", "pace", "noise")
        )

    def columns(self) -> list[Column]:
        return [
            Column("probe_id", Type.BIGINT, self._ids),
            *_place(self._segments, self._options.segments),
            Column("speed", Type.BIGINT, self._speeds),
            Column(TIME, Type.TIMESTAMP, self._times),
        ]

    def _ids(self, rows: Integers) -> Integers:
        return rows % self._options.probes + 1

    def _times(self, rows: Integers) -> Integers:
        return self._schedule.probe_times(rows) + self._options.start

    def _segments(self, rows: Integers) -> Integers:
        """Return the segments, counted from 0: a probe circles its freeway at a pace independent of its speed."""
        probes, miles = rows % self._options.probes, self._options.segments
        pace = _SLOW_PROBE + self._pace.below(probes, _FAST_PROBE - _SLOW_PROBE + 1)
        driven = self._schedule.probe_times(rows) // MICROS * pace // 3600
        mile: Integers = (self._mile.below(probes, miles) + driven) % miles
        return self._freeway.below(probes, self._options.freeways) * miles + mile

    def _speeds(self, rows: Integers) -> Integers:
        mean = self._flow.speed(self._segments(rows), self._times(rows))
        return _read(mean, self._noise.around(rows, _NOISE))


def _read(means: Integers, noise: Integers) -> Integers:
    speeds: Integers = np.clip(means + noise, SLOWEST, FASTEST)
    return speeds


def _place(segments: Callable[[Integers], Integers], miles: int) -> list[Column]:
    """Return the columns for the place of a reading; all of them count from 1."""
    return [
        Column("segment", Type.BIGINT, lambda rows: segments(rows) + 1),
        Column("freeway_id", Type.BIGINT, lambda rows: segments(rows) // miles + 1),
        Column("milepost", Type.BIGINT, lambda rows: segments(rows) % miles + 1),
    ]


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


TRAFFIC = Generated("traffic", TrafficOptions, Traffic)
