"""The cost of a batch by the size of the state, measured on the shards alone and on Spark."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from millstream.algebra.values import decode
from millstream.bench.spark.state_input import Batch, query, statements
from millstream.config import Options
from millstream.physical import durable
from millstream.physical.parts import Part


class DictStore:
    """A state store in a dictionary."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}
        self._token: str | None = None

    def token(self) -> str | None:
        return self._token

    def put_token(self, token: str) -> None:
        self._token = token

    def get(self, key: str) -> bytes:
        return self._held[key]

    def put(self, key: str, value: bytes) -> None:
        self._held[key] = value

    def remove(self, key: str) -> None:
        del self._held[key]

    def clear(self) -> None:
        self._held.clear()
        self._token = None


def without_spark(folder: Path, size: int, *, shards: int = 2) -> list[Batch]:
    """Drive the reader and the shards as Spark does, one after another in this process."""
    from millstream.control.jobs import Jobs
    from millstream.control.spark_mill import SparkMill
    from millstream.physical.page_source import PageReader

    jobs = Jobs(None, folder / "checkpoint", shards=shards)
    mill = SparkMill(jobs, options=Options(), wall=True)
    mill.execute(statements(folder) + f"CREATE QUERY q AS {query(size)};")
    job, made = jobs.job(), []
    reader, stores = PageReader({"log": str(job.log.path), "parallelism": str(shards)}), dict[int, DictStore]()
    offset = reader.initialOffset()
    while (end := reader.latestOffset(offset, None)) != offset:
        began = time.perf_counter()
        rows = [
            row for work in reader.partitions(offset, end) for page in reader.read(work) for row in page.to_pylist()
        ]
        parts = []
        for label in sorted({row["shard"] for row in rows}):
            mine = sorted((row for row in rows if row["shard"] == label), key=lambda row: (row["kind"], row["seq"]))
            parts.append(_shard(job.id, label, stores.setdefault(label, DictStore()), mine))
        held, written, seconds = zip(*parts, strict=True)
        made.append(Batch(sum(held), sum(written), max(seconds), time.perf_counter() - began))
        offset = end
    jobs.close()
    return made


def _shard(job: str, label: int, store: DictStore, rows: Sequence[dict[str, Any]]) -> tuple[int, int, float]:
    """Rows held, bytes written and seconds of one shard in one batch."""
    began = time.perf_counter()
    shard = durable.take(job, label, store)
    control = decode(rows[0]["page"])
    for record in control.records:
        shard.host.apply(record)
    shard.host.reach(control.now)
    for row in rows[1:]:
        shard.host.take_part(Part.from_bytes(row["stream"], row["head"], row["page"]))
    shard.host.run()
    shard.host.take_outputs()
    durable.keep(job, label, store, shard)
    return sum(shard.host.state_rows().values()), shard.written, time.perf_counter() - began


def on_spark(spark: Any, folder: Path, size: int) -> list[Batch]:
    from millstream import connect

    seen: dict[int, tuple[int, int, float]] = {}
    with connect(spark) as mill:
        mill.sql(statements(folder))

        def note(batch: int, rows: pl.DataFrame) -> None:  # noqa: ARG001
            statuses = mill.mill.statuses("q")
            held = sum(sum(status.state.values()) for status in statuses)
            written = sum(status.written for status in statuses)
            seen[batch] = held, written, max((status.seconds for status in statuses), default=0.0)

        mill.sql(query(size)).start(note, name="q")
        mill.await_end(timeout=300)
        time.sleep(1)  # the last report of Spark comes a little later
        reports = mill.mill.job("q").reports()
    taken = {report["batchId"]: report["durationMs"]["triggerExecution"] / 1e3 for report in reports}
    return [Batch(*seen[batch], taken[batch]) for batch in sorted(seen.keys() & taken.keys())]


def main(task_file: str, result_file: str) -> None:
    """Run the folders of a task on Spark: folder and size by name."""
    from millstream.control.session import start_session

    task: dict[str, int] = json.loads(Path(task_file).read_text())
    spark = start_session("local[2]", {"spark.sql.streaming.numRecentProgressUpdates": "10000"})
    made = {str(size): [_plain(b) for b in on_spark(spark, Path(folder), size)] for folder, size in task.items()}
    spark.stop()
    Path(result_file).write_text(json.dumps(made))


def _plain(batch: Batch) -> tuple[int, int, float, float]:
    return batch.state_rows, batch.written, batch.shard_s, batch.batch_s


if __name__ == "__main__":
    main(*sys.argv[1:])
