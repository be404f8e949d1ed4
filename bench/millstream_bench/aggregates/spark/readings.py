"""Readings of sensors as parquet files: `sensor`, `value`, `ts`, in the order of time.

A thousand sensors, each read once in every tenth of a second, in a random order: a frame of ten seconds has about a
hundred readings, and no two readings of a sensor have the same time. Times are milliseconds, which all engines have.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

SENSORS = 1_000
RATE = 10_000
"""Readings per second of event time."""
_START = 1_436_918_400_000_000
_OLDEST = 1_600_000_000
"""Modification time of the first file; each later one is a second younger. Spark reads files in this order."""


@dataclass(frozen=True, slots=True)
class ReadingFiles:
    folder: Path
    files: int
    rows: int

    def paths(self) -> list[Path]:
        return [self.folder / f"part-{number:05}.parquet" for number in range(self.files)]


def table(rows: int, seed: int = 0) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    times = _START + np.arange(rows, dtype=np.int64) * 1000 // RATE * 1000
    rounds = np.tile(np.arange(SENSORS), (-(-rows // SENSORS), 1))
    sensors = draw.permuted(rounds, axis=1).ravel()[:rows]
    columns = {"sensor": sensors, "value": draw.integers(0, 1_000_000, rows), "ts": times}
    return pl.DataFrame(columns).with_columns(pl.col("ts").cast(pl.Datetime("us")))


def write(folder: Path, rows: int, rows_per_file: int, seed: int = 0) -> ReadingFiles:
    folder.mkdir(parents=True, exist_ok=True)
    made = ReadingFiles(folder, -(-rows // rows_per_file), rows)
    all_rows = table(rows, seed)
    for number, path in enumerate(made.paths()):
        all_rows.slice(number * rows_per_file, rows_per_file).write_parquet(path, compression="snappy")
        os.utime(path, (_OLDEST + number, _OLDEST + number))
    return made
