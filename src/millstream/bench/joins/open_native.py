"""Open auctions with Spark's own stream-stream join: the tightest watermark and range of time with the same answers.

The files are in order of time, so the watermark needs no delay. A bid comes within its auction's life, of which Spark
knows only the longest: so long it keeps every auction.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from millstream.bench.spark.settings import session

SCHEMAS = {"auction": "id BIGINT, category BIGINT, ts TIMESTAMP", "bid": "auction BIGINT, price BIGINT, ts TIMESTAMP"}
ANSWERS = ("rows", "price", "category")


@dataclass(frozen=True, slots=True)
class Task:
    folder: str
    glob: str
    longest: int
    files_per_batch: int
    cores: int
    store: str


def perform(task: Task) -> dict[str, Any]:
    from pyspark.sql import functions as F

    spark = session(task.cores, task.store)

    def stream(name: str) -> Any:
        reader = spark.readStream.schema(SCHEMAS[name]).option("maxFilesPerTrigger", task.files_per_batch)
        return (
            reader.option("pathGlobFilter", task.glob).parquet(f"{task.folder}/{name}").withWatermark("ts", "0 seconds")
        )

    bids = stream("bid").select("auction", "price", F.col("ts").alias("bid_time"))
    auctions = stream("auction").select("id", "category", F.col("ts").alias("opened"))
    longest = f"INTERVAL {task.longest} MICROSECONDS"
    near = f"auction = id AND bid_time >= opened AND bid_time <= opened + {longest}"
    made = bids.join(auctions, F.expr(near)).select("auction", "price", "category")
    totals = F.count(F.lit(1)), F.sum("price"), F.sum("category")
    made = made.observe("answers", *(total.alias(name) for total, name in zip(totals, ANSWERS, strict=True)))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        writer = made.writeStream.format("noop").outputMode("append").option("checkpointLocation", checkpoint)
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        reports = [json.loads(report.json) for report in running.recentProgress]
    spark.stop()
    observed = [report.get("observedMetrics", {}).get("answers", {}) for report in reports]
    answers = {name: sum(int(seen.get(name) or 0) for seen in observed) for name in ANSWERS}
    return {"batches": [_batch(report) for report in reports], "answers": answers}


def _batch(report: dict[str, Any]) -> dict[str, Any]:
    started = datetime.fromisoformat(report["timestamp"]).timestamp()
    return {
        "rows": report["numInputRows"],
        "started": started,
        "ended": started + report["durationMs"]["triggerExecution"] / 1000,
        "state_rows": sum(operator["numRowsTotal"] for operator in report["stateOperators"]),
    }


def main(task_file: str, result_file: str) -> None:
    task = Task(**json.loads(Path(task_file).read_text()))
    Path(result_file).write_text(json.dumps(perform(task)))


if __name__ == "__main__":
    main(*sys.argv[1:])
