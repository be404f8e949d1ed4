"""Open auctions with Millstream: the same files, and the stream of closings, which closes the bids."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from millstream.bench.joins.open_native import ANSWERS
from millstream.bench.spark.mill import Totals

STREAMS = {
    "auction": "(id BIGINT, category BIGINT, ts TIMESTAMP) ORDER BY ts PRIMARY KEY (id)",
    "bid": "(auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts",
    "closed": "(id BIGINT, ts TIMESTAMP) ORDER BY ts CLOSES bid (auction) BY (id)",
}
QUERY = "SELECT b.auction, b.price, a.category FROM auction a JOIN bid b ON a.id = b.auction"


@dataclass(frozen=True, slots=True)
class Task:
    files: dict[str, list[str]]
    files_per_batch: int
    cores: int


def statements(folder: Path, files_per_batch: int) -> list[str]:
    options = f"max_files_per_trigger = '{files_per_batch}', max_rows_per_trigger = '100000000', once = 'true'"
    return [
        f"CREATE STREAM {name} {declared} WITH (connector = 'parquet', path = '{folder / name}', {options})"
        for name, declared in STREAMS.items()
    ]


def perform(task: Task) -> dict[str, Any]:
    from millstream import connect

    settings = {"spark.sql.streaming.numRecentProgressUpdates": "10000", "spark.driver.memory": "6g"}
    totals = Totals(ANSWERS)
    held: dict[int, tuple[int, int]] = {}
    with connect(master=f"local[{task.cores}]", settings=settings) as mill:
        for statement in statements(_linked(task.files), task.files_per_batch):
            mill.sql(statement)
        query = mill.sql(QUERY).start(totals)
        job = mill.mill.job(query.name or "")

        def note() -> None:
            last = job.last
            held[last.batch] = last.rows, query.progress().state_rows

        mill.await_end(poll=note)
        time.sleep(1)  # the last report of Spark comes a little later
        note()
        reports = job.reports()
    return {"batches": [_batch(report, held) for report in reports], "answers": totals.totals}


def _linked(files: dict[str, list[str]]) -> Path:
    """A folder with just these files."""
    folder = Path("streams").absolute()
    for name, paths in files.items():
        (folder / name).mkdir(parents=True)
        for path in paths:
            (folder / name / Path(path).name).symlink_to(path)
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
