"""A join whose state has a fixed size: in every batch as many rows leave its window as arrive.

`held` has a row a millisecond and a window of as many milliseconds as rows to hold; `probe` has a row a millisecond too
and holds nothing. About one row of `probe` in a hundred finds a match.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

COLUMNS = "k BIGINT, ts TIMESTAMP"
STREAMS = ("held", "probe")
ROWS = 2_000
"""Rows of each stream in a batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """`written`: bytes of state; `shard_s`: time of the slowest shard; `batch_s`: the whole batch."""

    state_rows: int
    written: int
    shard_s: float
    batch_s: float


def statements(folder: Path) -> str:
    return "".join(
        f"CREATE STREAM {stream} ({COLUMNS}) ORDER BY ts WITH (connector = 'parquet', path = '{folder / stream}', "
        "max_files_per_trigger = '1', max_rows_per_trigger = '100000000', once = 'true');"
        for stream in STREAMS
    )


def query(size: int) -> str:
    return f"SELECT p.k, h.ts FROM probe p [NOW] JOIN held h [RANGE {size} MILLISECONDS] ON p.k = h.k"


def write(folder: Path, size: int, batches: int, *, rows: int = ROWS) -> None:
    """One file of each stream per batch; the first one of `held` fills the window."""
    rng = np.random.default_rng(0)
    for stream in STREAMS:
        (folder / stream).mkdir(parents=True)
    start = 0
    for number in range(batches + 1):
        count = size if number == 0 else rows
        times = start + np.arange(count)
        for stream, chosen in zip(STREAMS, (times, times[-rows:]), strict=True):
            frame = pl.DataFrame(
                {
                    "k": rng.integers(0, 100 * size, len(chosen)),
                    "ts": pl.Series(chosen * 1000, dtype=pl.Int64).cast(pl.Datetime("us")),
                }
            )
            frame.write_parquet(folder / stream / f"{number:05}.parquet")
        start += count
