"""The cost of a batch by the size of the state, measured on the shards alone and on Spark."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl

from millstream.config import Options
from millstream_bench.spark.state.input import Batch, query, statements


def without_spark(folder: Path, size: int, *, shards: int = 2) -> list[Batch]:
    """The same job in this process, its state kept in a folder."""
    from millstream.control.job.jobs import LocalJobs
    from millstream.control.job.local import LocalJob
    from millstream.control.mill.base import Mill

    jobs, made = LocalJobs(folder / "checkpoint", shards=shards), list[Batch]()
    mill = Mill(jobs, options=Options(), wall=True)
    mill.execute(statements(folder) + f"CREATE QUERY q AS {query(size)};")
    job = mill.job("q")
    assert isinstance(job, LocalJob)
    while job.step():
        held = sum(sum(status.state.values()) for _, _, status in mill.reports("q"))
        made.append(Batch(held, job.last.written, max(s.seconds for s in job.heard.values()), job.last.seconds))
    jobs.close()
    return made


def on_spark(spark: Any, folder: Path, size: int) -> list[Batch]:
    from millstream import connect

    seen: dict[int, tuple[int, int, float]] = {}
    with connect(spark) as mill:
        mill.sql(statements(folder))

        def note(batch: int, rows: pl.DataFrame) -> None:
            statuses = [status for _, _, status in mill.mill.reports("q")]
            held = sum(sum(status.state.values()) for status in statuses)
            written = sum(status.written for status in statuses)
            seen[batch] = held, written, max((status.seconds for status in statuses), default=0.0)

        mill.sql(query(size)).start(note, name="q")
        mill.await_end(timeout=300)
        time.sleep(1)  # Spark's last report arrives a little later
        reports = mill.mill.job("q").reports()
    taken = {report["batchId"]: report["durationMs"]["triggerExecution"] / 1e3 for report in reports}
    return [Batch(*seen[batch], taken[batch]) for batch in sorted(seen.keys() & taken.keys())]


def main(task_file: str, result_file: str) -> None:
    """Run the folders of a task on Spark: folder and size by name."""
    from millstream.control.spark.session import start_session

    task: dict[str, int] = json.loads(Path(task_file).read_text())
    spark = start_session("local[2]", {"spark.sql.streaming.numRecentProgressUpdates": "10000"})
    made = {str(size): [_plain(b) for b in on_spark(spark, Path(folder), size)] for folder, size in task.items()}
    spark.stop()
    Path(result_file).write_text(json.dumps(made))


def _plain(batch: Batch) -> tuple[int, int, float, float]:
    return batch.state_rows, batch.written, batch.shard_s, batch.batch_s


if __name__ == "__main__":
    main(*sys.argv[1:])
