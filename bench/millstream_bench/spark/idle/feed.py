"""Two streams of files, one busy and one nearly silent, and the record of their results.

| stream | rate | files |
|---|---|---|
| `a` | 1,000 rows a second | one of 100 rows every 100 ms |
| `b` | one row every two seconds | one of one row |

A row's `ts` is its due time; a file appears when its last row is due.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream_bench.spark.processes import Sampler

COLUMNS = "k BIGINT, ts TIMESTAMP"
WINDOW = 500_000
"""Length of the windows that are counted, in microseconds."""
REACH = 2_500_000
"""Reach of the join in microseconds: a row of `a` joins the rows of `b` at most this much older, always one or two."""
BUSY, ROWS, SILENT = 0.1, 100, 2.0
"""Seconds between two files of `a`, rows in each, and seconds between two files of `b`."""
QUERIES = ("union", "join")
LONGEST_START = 90.0
"""Time limit of the first result, in seconds."""
AFTERWARDS = 7.0
"""Seconds of rows after the last measured one, so that slow results are seen."""


@dataclass(slots=True)
class Arrivals:
    """Time of each count in seconds, and `ts` of its newest row in microseconds."""

    seen: list[tuple[float, int]] = field(default_factory=list)

    def note(self, newest: list[int]) -> None:
        now = time.time()
        self.seen.extend((now, ts) for ts in newest)


def latencies(seen: list[tuple[float, int]], start: float, end: float, stopped: float) -> tuple[list[float], bool]:
    """Milliseconds from the newest row of each count to the count, for rows between two moments, and whether all of
    these were counted. If not, a count at the end of the run is added.

    >>> latencies([(1.2, 1_000_000), (2.0, 1_499_000), (2.5, 1_999_000)], 0.9, 1.5, 3.0)
    ([200.0, 501.0], True)
    >>> latencies([(1.2, 1_000_000)], 0.9, 1.5, 3.0)
    ([200.0, 1500.0], False)
    """
    waits = [round(at * 1e3 - ts / 1e3, 1) for at, ts in seen if start * 1e6 <= ts < end * 1e6]
    complete = max((ts for _, ts in seen), default=0) >= end * 1e6
    return waits + ([] if complete else [round((stopped - end) * 1e3, 1)]), complete


class Feed:
    """Write files into `a` and `b` below a folder until stopped."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._stopped = folder, Event()
        for name in ("a", "b", "making"):
            (folder / name).mkdir(parents=True)
        self._threads = [Thread(target=self._busy, daemon=True), Thread(target=self._silent, daemon=True)]

    def __enter__(self) -> Feed:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _busy(self) -> None:
        span = BUSY * 1e6 / ROWS
        self._paced(BUSY, lambda number, due: self._put("a", number, due - np.arange(ROWS)[::-1] * span))

    def _silent(self) -> None:
        self._paced(SILENT, lambda number, due: self._put("b", number, np.array([due])))

    def _paced(self, every: float, put: Callable[[int, float], None]) -> None:
        began, number = time.time(), 0
        while not self._stopped.wait(max(began + number * every - time.time(), 0)):
            put(number, (began + number * every) * 1e6)
            number += 1

    def _put(self, stream: str, number: int, times: npt.NDArray[np.floating[Any]]) -> None:
        ts = pl.Series(times.astype(np.int64)).cast(pl.Datetime("us"))
        making = self.folder / "making" / f"{stream}{number:07}.parquet"
        pl.DataFrame({"k": np.zeros(len(ts), dtype=np.int64), "ts": ts}).write_parquet(making)
        making.rename(self.folder / stream / f"{number:07}.parquet")


def case(query: str, mode: str, arrivals: Arrivals, settle: float, seconds: float) -> dict[str, object]:
    """Wait for the first result, let the query settle, and return the counts seen while the feed continues."""
    began = time.time()
    while not arrivals.seen and time.time() - began < LONGEST_START:
        time.sleep(0.05)
    start = time.time() + settle
    with Sampler(os.getpid(), every=1.0) as sampler:
        time.sleep(settle + seconds + AFTERWARDS)
    waits, complete = latencies(list(arrivals.seen), start, start + seconds, time.time())
    cores = sum(sampler.record.between(start, start + seconds).values()) / seconds
    return {"query": query, "mode": mode, "complete": complete, "latencies_ms": waits, "cpu_s_per_s": cores}
