"""The latency query through a connection, as a user would open it: files in, rows handed to a function.

For every batch it also writes Spark's durations by phase and the time of the shards. These lines have no rows, so they
do not count as results.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO, Any

import polars as pl

from millstream_bench.spark.arrivals import SCHEMA, WINDOW

QUERY = (
    "SELECT window_end, auction, COUNT(*) AS bids, MAX(arrived) AS newest "
    f"FROM bid [RANGE {WINDOW} MICROSECONDS] GROUP BY auction"
)


@dataclass(frozen=True, slots=True)
class MillstreamLatency:
    name: str = "millstream"
    module: str = __name__


class Lines:
    """A sink that writes each batch at once as a line of JSON."""

    def __init__(self, file: IO[str]) -> None:
        self._file, self._lock = file, Lock()

    def __call__(self, batch: int, rows: pl.DataFrame) -> None:
        at = time.time()
        received = rows.select(pl.col("window_end").to_physical(), "newest", "bids").rows()
        self.write({"at": at, "rows": received})

    def write(self, value: dict[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(value) + "\n")


def main(folder: str, output: str, stop: str, *, cores: int = 2) -> None:
    from millstream import connect

    with (
        Path(output).with_suffix(".draft").open("w", buffering=1) as file,
        connect(master=f"local[{cores}]", settings={"spark.driver.memory": "6g"}) as mill,
    ):
        sink, seen = Lines(file), -1
        options = f"connector = 'parquet', path = '{folder}'"
        mill.sql(f"CREATE STREAM bid ({SCHEMA}) ORDER BY ts WITH ({options})")
        query = mill.sql(QUERY).start(sink)
        job = mill.mill.job(query.name or "")
        Path(output).with_suffix(".draft").rename(output)  # it is ready
        while not Path(stop).exists():
            mill.check()
            report = job.report
            if report is not None and report["batchId"] != seen:
                seen = report["batchId"]
                heard = mill.mill.reports(query.name or "")
                shards = max((status.seconds for _, _, status in heard), default=0.0)
                phases = {**report["durationMs"], "shard": shards * 1e3}
                sink.write({"at": time.time(), "rows": [], "phases": phases})
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
