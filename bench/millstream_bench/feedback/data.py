"""Readings of detectors and probe vehicles as parquet files, a file a batch.

| data | rows of a day | |
|---|---|---|
| sensor | 648,000 | 5 freeways of 10 places with 3 detectors each, a reading every 20 seconds |
| dirty | as sensor | the speed of every other reading is -1 |
| probe | 14,400 | 50 vehicles, a report every 5 minutes |
| location | 150 | the freeway and milepost of each detector |
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

START = datetime(2010, 2, 15)
FREEWAYS, PLACES, LANES = 5, 10, 3
DETECTORS = FREEWAYS * PLACES * LANES
PERIOD = 20
VEHICLES, REPORT = 50, 300
SENSOR = "sensor_id BIGINT, volume BIGINT, speed BIGINT, occupancy BIGINT, ts TIMESTAMP"
PROBE = "probe_id BIGINT, freeway_id BIGINT, milepost BIGINT, speed BIGINT, ts TIMESTAMP"
LOCATION = "sensor_id BIGINT, freeway_id BIGINT, milepost BIGINT"


def sensors(hours: int, *, dirty: bool = False, seed: int = 0) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    steps = hours * 3600 // PERIOD
    rows = steps * DETECTORS
    volume = draw.poisson(15, rows)
    speed = np.clip(draw.normal(50, 10, rows), 1, 80).round().astype(np.int64)
    if dirty:
        speed[::2] = -1
    columns = {
        "sensor_id": np.tile(np.arange(1001, 1001 + DETECTORS), steps),
        "volume": volume.astype(np.int64),
        "speed": speed,
        "occupancy": np.clip(volume * 100 // np.maximum(speed, 1), 0, 100).astype(np.int64),
        "ts": _times(np.repeat(np.arange(steps) * PERIOD, DETECTORS)),
    }
    return pl.DataFrame(columns)


def probes(hours: int, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    steps = hours * 3600 // REPORT
    rows = steps * VEHICLES
    seconds = np.arange(rows) * REPORT // VEHICLES
    columns = {
        "probe_id": np.tile(np.arange(1, VEHICLES + 1), steps),
        "freeway_id": draw.integers(1, FREEWAYS + 1, rows),
        "milepost": draw.integers(1, PLACES + 1, rows),
        "speed": np.clip(draw.normal(50, 10, rows), 1, 80).round().astype(np.int64),
        "ts": _times(seconds),
    }
    return pl.DataFrame(columns)


def locations() -> pl.DataFrame:
    place = np.arange(DETECTORS) // LANES
    numbers = np.arange(1001, 1001 + DETECTORS)
    return pl.DataFrame({"sensor_id": numbers, "freeway_id": place // PLACES + 1, "milepost": place % PLACES + 1})


def _times(seconds: np.ndarray) -> pl.Series:
    return START + pl.Series(seconds).cast(pl.Int64) * timedelta(seconds=1)


def write(rows: pl.DataFrame, folder: Path, minutes: int) -> Path:
    """Write one file per interval of minutes."""
    folder.mkdir(parents=True)
    slots = rows.get_column("ts").dt.truncate(f"{minutes}m")
    for number, part in enumerate(rows.with_columns(slots.alias("slot")).partition_by("slot", maintain_order=True)):
        part.drop("slot").write_parquet(folder / f"part-{number:05}.parquet")
    return folder


def nearly_empty(rows: pl.DataFrame, folder: Path, minutes: int) -> Path:
    """As many files, with a row each."""
    slots = pl.col("ts").dt.truncate(f"{minutes}m").alias("slot")
    return write(rows.group_by(slots, maintain_order=True).first().drop("slot"), folder, minutes)


def stream(name: str, columns: str, path: Path) -> str:
    options = f"connector = 'parquet', path = '{path}', max_files_per_trigger = '1', once = 'true'"
    return f"CREATE STREAM {name} ({columns}) ORDER BY ts WITH ({options}, max_rows_per_trigger = '100000000')"


def table(name: str, columns: str, path: Path) -> str:
    return f"CREATE TABLE {name} ({columns}) WITH (connector = 'parquet', path = '{path}')"


Made = Callable[[int], pl.DataFrame]
