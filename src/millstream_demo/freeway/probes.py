"""Probe vehicles: each drives along one direction at about the speed that the detectors there measure, and again from
the start when it has left. It reports its mean speed since its last report, and the station that it passed last.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl

from millstream_demo.freeway import READINGS, Station, stations

STEP = 20
"""Seconds between two moves of all vehicles."""
REPORTS = 3
"""Moves between two reports of a vehicle."""
DEVIATION = 4.0
"""Standard deviation of a reported speed, in miles per hour."""


def generate(vehicles: int = 60, seed: int = 205) -> pl.DataFrame:
    """Return the reports of all vehicles, in the order of time."""
    chance = np.random.default_rng(seed)
    speeds = _speeds()
    made = [_driven(chance, speeds, direction, vehicles // 2, first) for direction, first in (("N", 1), ("S", 1001))]
    return pl.concat(made).sort("ts", "probe")


def write(path: Path, vehicles: int = 60) -> None:
    generate(vehicles).write_parquet(path)


def _speeds() -> pl.DataFrame:
    """The mean speed of each station in every step; where no vehicle passed, the last one known."""
    readings = pl.read_parquet(READINGS).filter(pl.col("volume") > 0)
    means = readings.group_by("ts", "station").agg(pl.col("speed").mean())
    wide = means.pivot(on="station", index="ts", values="speed").sort("ts")
    return wide.select("ts", pl.exclude("ts").forward_fill().backward_fill().rolling_mean(6, min_samples=1))


def _driven(
    chance: np.random.Generator, speeds: pl.DataFrame, direction: str, vehicles: int, first: int
) -> pl.DataFrame:
    route = sorted((s for s in stations() if s.direction == direction), key=lambda s: s.milepost)
    measured = speeds.select(str(station.number) for station in route).to_numpy()
    places = np.array([station.milepost for station in route])
    low, length = places[0] - 0.5, places[-1] - places[0] + 1.0
    sign = 1 if direction == "N" else -1
    at, driven = low + chance.random(vehicles) * length, np.zeros(vehicles)
    reports: list[pl.DataFrame] = []
    numbers = np.arange(first, first + vehicles)
    for step, (now, row) in enumerate(zip(speeds.get_column("ts"), measured, strict=True)):
        near = np.abs(at[:, None] - places).argmin(axis=1)
        speed = np.maximum(row[near], 2.0)
        driven += speed / REPORTS
        at = low + (at - low + sign * speed * STEP / 3600) % length
        reporting = (numbers + step) % REPORTS == 0
        reports.append(_reports(chance, now, numbers[reporting], route, near[reporting], driven[reporting]))
        driven[reporting] = 0.0
    return pl.concat(reports[REPORTS:])


def _reports(
    chance: np.random.Generator,
    now: timedelta,
    numbers: np.ndarray,
    route: list[Station],
    near: np.ndarray,
    speed: np.ndarray,
) -> pl.DataFrame:
    noisy = np.clip(speed + chance.normal(0, DEVIATION, len(speed)), 1, 90).round().astype(np.int64)
    passed = np.array([station.number for station in route])[near]
    frame = pl.DataFrame({"probe": numbers, "station": passed, "speed": noisy})
    return frame.select(pl.lit(now).alias("ts"), "probe", "station", "speed")
