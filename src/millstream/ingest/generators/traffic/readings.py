"""Readings of detectors and probe vehicles: each column is a function of the numbers of the readings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from millstream.algebra.arrays import Integers
from millstream.algebra.types import MICROS, Type
from millstream.ingest.generators.base import TIME, Column
from millstream.ingest.generators.draws import Draws
from millstream.ingest.generators.traffic.flow import FASTEST, FULL, SLOWEST, Flow, occupancy
from millstream.ingest.generators.traffic.options import TrafficOptions
from millstream.ingest.generators.traffic.schedule import Schedule

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
