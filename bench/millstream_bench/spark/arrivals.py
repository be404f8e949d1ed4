"""Rows at a steady rate: a producer that renames a small parquet file into place every 100 ms."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

SCHEMA = "auction BIGINT, ts TIMESTAMP, arrived BIGINT"
"""`ts` is when the row was due, `arrived` when its file appeared, in microseconds since the epoch."""
WINDOW = 500_000
"""Length of a tumbling window of `ts`, in microseconds."""
EVERY = 0.1
"""Seconds between two files."""
_AUCTIONS = 100


@dataclass(slots=True)
class Drops:
    """Record of the producer; times in microseconds since the epoch."""

    newest: list[int] = field(default_factory=list)
    """The last `ts` in each file."""
    arrived: list[int] = field(default_factory=list)
    """Time of each file."""
    windows: Counter[int] = field(default_factory=Counter)
    """Rows in each window, by its end."""

    def completed(self, window_end: int) -> int | None:
        """Time of the first file with a row at or after the end of the window.

        >>> Drops([99, 199, 299], [105, 205, 305]).completed(200)
        305
        """
        at = int(np.searchsorted(self.newest, window_end, side="left"))
        return self.arrived[at] if at < len(self.newest) else None

    def completed_between(self, start: float, end: float) -> dict[int, int]:
        """The windows completed between two moments (in seconds), and the time of each."""
        moments = {window: self.completed(window) for window in self.windows}
        return {window: at for window, at in moments.items() if at is not None and start <= at / 1e6 < end}


def produce(place: Path, rate: int, seconds: float, drops: Drops) -> tuple[float, float]:
    """Write files with the rows due since the last one into the folder `in`; return start and end."""
    began = time.time()
    count = max(round(rate * EVERY), 1)
    for number in range(round(seconds / EVERY)):
        start = began + number * EVERY
        time.sleep(max(start + EVERY - time.time(), 0))
        due = (start * 1e6 + np.arange(count) * (EVERY * 1e6 / count)).astype(np.int64)
        auction = (np.arange(count) * 7919 + number) % _AUCTIONS
        rows = pl.DataFrame({"auction": auction, "ts": pl.Series(due).cast(pl.Datetime("us"))})
        name = f"{len(drops.arrived):07}.parquet"
        arrived = int(time.time() * 1e6)
        making = place / "making" / name
        rows.with_columns(pl.lit(arrived, pl.Int64).alias("arrived")).write_parquet(making, compression="snappy")
        making.rename(place / "in" / name)
        ends, counts = np.unique(due // WINDOW * WINDOW + WINDOW, return_counts=True)
        drops.windows.update(dict(zip(ends.tolist(), counts.tolist(), strict=True)))
        drops.newest.append(int(due[-1]))
        drops.arrived.append(arrived)
    return began, time.time()
