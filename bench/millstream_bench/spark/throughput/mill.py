"""Millstream in the contest: the same files, read as pages, through a connection as a user would open it."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from millstream_bench.spark.latency.mill import MillstreamLatency
from millstream_bench.spark.measurement import Measurement, RunOptions
from millstream_bench.spark.subject import measure
from millstream_bench.spark.throughput.data import EventFiles
from millstream_bench.spark.throughput.workloads import Workload

if TYPE_CHECKING:
    from millstream.control.connection import Connection

COLUMNS = {
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, ts TIMESTAMP",
    "auction": "id BIGINT, seller BIGINT, category BIGINT, initial_bid BIGINT, reserve BIGINT, ts TIMESTAMP, "
    "expires TIMESTAMP",
}
QUERIES = {
    "w1": "SELECT window_start, auction, COUNT(*) AS count, MAX(price) AS max, SUM(price) AS sum "
    "FROM bid [RANGE 10 SECONDS] GROUP BY auction",
    "w2": "SELECT b.auction, b.price, a.category, b.ts FROM bid b JOIN auction a ON b.auction = a.id "
    "WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND",
}


@dataclass(frozen=True, slots=True)
class Task:
    workload: str
    files: dict[str, list[str]]
    streams: tuple[str, ...]
    answers: tuple[str, ...]
    files_per_batch: int
    cores: int


class MillstreamEntry:
    name = "millstream"

    def run(self, workload: Workload, data: EventFiles, options: RunOptions) -> Measurement:
        task = Task(
            workload.name,
            {stream: [str(path) for path in data.paths(stream)] for stream in workload.streams},
            workload.streams,
            workload.answers,
            options.files_per_batch,
            options.cores,
        )
        return measure(__name__, asdict(task), warm_up=options.warm_up)


def contestant() -> MillstreamEntry:
    return MillstreamEntry()


def latency_contestant() -> MillstreamLatency:
    return MillstreamLatency()


class Totals:
    """A sink that adds up the answers."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.totals = dict.fromkeys(names, 0)

    def __call__(self, batch: int, rows: pl.DataFrame) -> None:
        for name in self.totals:
            self.totals[name] += rows.height if name == "rows" else int(rows.get_column(name).sum())


SETTINGS = {"spark.sql.streaming.numRecentProgressUpdates": "10000", "spark.driver.memory": "6g"}


def perform(task: Task) -> dict[str, Any]:
    from millstream import connect

    with connect(master=f"local[{task.cores}]", settings=SETTINGS) as mill:
        for stream in task.streams:
            path = linked(stream, task.files[stream])
            options = f"connector = 'parquet', path = '{path}', max_files_per_trigger = '{task.files_per_batch}'"
            more = "max_rows_per_trigger = '100000000', once = 'true'"
            mill.sql(f"CREATE STREAM {stream} ({COLUMNS[stream]}) ORDER BY ts WITH ({options}, {more})")
        return run_to_end(mill, QUERIES[task.workload], task.answers)


def run_to_end(mill: Connection, select: str, answers: tuple[str, ...]) -> dict[str, Any]:
    """Run a query until its streams end; return its batches and answers."""
    totals = Totals(answers)
    held: dict[int, tuple[int, int]] = {}
    query = mill.sql(select).start(totals)
    job = mill.mill.job(query.name or "")

    def note() -> None:
        last = job.last
        held[last.batch] = last.rows, query.progress().state_rows

    mill.await_end(poll=note)
    time.sleep(1)  # Spark's last report arrives a little later
    note()
    return {"batches": [_batch(report, held) for report in job.reports()], "answers": totals.totals}


def linked(stream: str, files: list[str]) -> Path:
    """A folder with just these files, without the one that closes windows for Spark: the end of the files does that."""
    folder = Path(stream).absolute()
    folder.mkdir()
    for file in files:
        (folder / Path(file).name).symlink_to(file)
    return folder


def _batch(report: dict[str, Any], held: dict[int, tuple[int, int]]) -> dict[str, Any]:
    started = datetime.fromisoformat(report["timestamp"]).timestamp()
    rows, state = held.get(report["batchId"], (0, 0))
    return {
        "rows": rows,
        "started": started,
        "ended": started + report["durationMs"]["triggerExecution"] / 1000,
        "state_rows": state,
    }


def main(task_file: str, result_file: str) -> None:
    task = Task(**json.loads(Path(task_file).read_text()))
    Path(result_file).write_text(json.dumps(perform(task)))


if __name__ == "__main__":
    main(*sys.argv[1:])
