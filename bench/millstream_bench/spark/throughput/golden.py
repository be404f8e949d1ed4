"""The right answers, by DuckDB over the whole input at once; also an upper bound on the speed of the machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from millstream_bench.spark.throughput.data import EventFiles
from millstream_bench.spark.throughput.workloads import Workload


@dataclass(frozen=True, slots=True)
class Golden:
    rows: int
    """Rows read."""
    answers: dict[str, int]
    wall_s: float
    cpu_s: float


def golden(workload: Workload, data: EventFiles, *, threads: int = 2) -> Golden:
    """The answers over all rows but the closing ones; times are those of the second of two runs."""
    import duckdb

    with duckdb.connect(config={"threads": threads}) as connection:
        for stream in workload.streams:
            names = ", ".join(_quoted(path) for path in data.paths(stream))
            connection.execute(f"CREATE VIEW {stream} AS FROM read_parquet([{names}])")
        for _ in range(2):
            wall, cpu = time.perf_counter(), time.process_time()
            row = connection.execute(workload.duckdb).fetchone()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert row is not None
    answers = {name: int(value or 0) for name, value in zip(workload.answers, row, strict=True)}
    return Golden(sum(data.rows(stream) for stream in workload.streams), answers, wall, cpu)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
