"""Two streams of files, one busy and one nearly silent, and the account of what is made of them.

| stream | rate | files |
|---|---|---|
| `a` | 1,000 rows a second | one of 100 rows every 100 ms |
| `b` | one row every two seconds | one of one row |

A row's `ts` is when it was due; a file appears when its last row is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

COLUMNS = "k BIGINT, ts TIMESTAMP"
WINDOW = 500_000
"""Length of the windows that are counted, in microseconds."""
REACH = 2_500_000
"""A row of `a` joins the rows of `b` that are at most so much older, in microseconds: always one or two."""
BUSY, ROWS, SILENT = 0.1, 100, 2.0
"""Seconds between two files of `a`, rows in each, and seconds between two files of `b`."""
QUERIES = ("union", "join")
LONGEST_START = 90.0
"""Seconds in which the first result has to come."""
AFTERWARDS = 7.0
"""Seconds for which rows still come after the last measured window, so that slow results are seen."""


@dataclass(slots=True)
class Arrivals:
    """When the result of each window first came, by the window's end in microseconds."""

    first: dict[int, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def note(self, ends: list[int]) -> None:
        now = time.time()
        with self._lock:
            for end in ends:
                self.first.setdefault(end, now)


def latencies(first: dict[int, float], start: float, end: float, stopped: float) -> tuple[list[float], int]:
    """Milliseconds from the end of each window between two moments to its result, and how many never came; these count
    as if they had come when the run was stopped.

    >>> latencies({1_000_000: 1.2, 1_500_000: 1.6}, 0.9, 2.1, 3.0)
    ([200.0, 100.0, 1000.0], 1)
    """
    ends = range(-int(-start * 1e6 // WINDOW) * WINDOW, int(end * 1e6), WINDOW)
    waits = [round(first.get(window, stopped) * 1e3 - window / 1e3, 1) for window in ends]
    return waits, sum(window not in first for window in ends)


class Feed:
    """Puts files into `a` and `b` below a folder until it is stopped."""

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
    """Wait while a query runs and its feed goes on, and say what was seen, once the first result has come and the query
    has settled."""
    began = time.time()
    while not arrivals.first and time.time() - began < LONGEST_START:
        time.sleep(0.05)
    start = time.time() + settle
    time.sleep(settle + seconds + AFTERWARDS)
    waits, missing = latencies(dict(arrivals.first), start, start + seconds, time.time())
    return {"query": query, "mode": mode, "missing": missing, "latencies_ms": waits}
