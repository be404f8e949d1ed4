"""Auctions, their bids and their closings as parquet files: most auctions are short, a few very long.

| stream | columns |
|---|---|
| `auction` | `id`, `category`, `ts`: 600 a second of event time |
| `bid` | `auction`, `price`, `ts`: within the auction's life, proportional to its length; 9,200 a second |
| `closed` | `id`, `ts`: when the auction closes |

The i-th files of all streams cover the same time and have the same modification time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

STREAMS = ("auction", "bid", "closed")
RATE = 9_800
"""Auctions and bids per second of event time."""
OPENED, BIDS = 600, 46 / 3
"""Auctions a second, and bids of an auction on average."""
SHORTEST, LONGEST, EXPONENT = 2.0, 120.0, 1.5
"""Lives in seconds: a Pareto distribution, cut off."""
_SECOND = 1_000_000
_START = 1_436_918_400_000_000
_OLDEST = 1_600_000_000
"""Modification time of the first files; each later one is a second younger. Spark reads files in this order."""


@dataclass(frozen=True, slots=True)
class AuctionFiles:
    folder: Path
    files: int
    events: int
    longest: int
    """The longest life of an auction in the data, in microseconds."""

    def paths(self, stream: str) -> list[Path]:
        return [self.folder / stream / _name(number) for number in range(self.files)]

    def first(self, files: int) -> AuctionFiles:
        """The beginning of the streams."""
        return AuctionFiles(self.folder, min(files, self.files), self.events * files // self.files, self.longest)

    def glob(self) -> str:
        return "{" + ",".join(_name(number) for number in range(self.files)) + "}"


def tables(events: int, seed: int = 0) -> tuple[dict[str, pl.DataFrame], int]:
    """The streams in order of time, and the longest life."""
    draw = np.random.default_rng(seed)
    seconds = events / RATE
    count = round(seconds * OPENED)
    opened = np.arange(count, dtype=np.int64) * _SECOND // OPENED
    lives = np.minimum(SHORTEST * (1 - draw.random(count)) ** (-1 / EXPONENT), LONGEST)
    each = draw.poisson(BIDS * lives / lives.mean())
    lives_us = (lives * _SECOND).astype(np.int64)
    auction = np.repeat(np.arange(count, dtype=np.int64), each)
    bid_at = opened[auction] + (draw.random(len(auction)) * lives_us[auction]).astype(np.int64)
    price = draw.integers(100, 1_000_000, len(auction))
    end = round(seconds * _SECOND)
    made = {
        "auction": {"id": np.arange(count), "category": draw.integers(10, 15, count), "ts": opened},
        "bid": {"auction": auction, "price": price, "ts": bid_at},
        "closed": {"id": np.arange(count), "ts": opened + lives_us},
    }
    frames = {name: pl.DataFrame(columns).filter(pl.col("ts") < end).sort("ts") for name, columns in made.items()}
    return frames, int(lives_us.max())


def write(folder: Path, events: int, events_per_file: int, seed: int = 0) -> AuctionFiles:
    frames, longest = tables(events, seed)
    period = events_per_file * _SECOND // RATE
    files = -(-events // events_per_file)
    for name, frame in frames.items():
        (folder / name).mkdir(parents=True)
        edges = np.searchsorted(frame.get_column("ts").to_numpy(), np.arange(1, files) * period).tolist()
        timed = frame.with_columns((pl.col("ts") + _START).cast(pl.Datetime("us")))
        for number, (start, stop) in enumerate(zip([0, *edges], [*edges, frame.height], strict=True)):
            path = folder / name / _name(number)
            timed.slice(start, stop - start).write_parquet(path, compression="snappy")
            os.utime(path, (_OLDEST + number, _OLDEST + number))
    return AuctionFiles(folder, files, sum(frames[name].height for name in ("auction", "bid")), longest)


def _name(number: int) -> str:
    return f"part-{number:05}.parquet"
