"""Open auctions with Spark's own stream-stream join: the tightest watermark and range of time with the same answers.

The files are in order of time, so the watermark needs no delay. A bid arrives within its auction's life; Spark knows
only the longest life and keeps every auction that long.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream_bench.spark.settings import session
from millstream_bench.spark.throughput.native import files, run_to_end

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
        return files(spark, task, name, SCHEMAS[name])

    bids = stream("bid").select("auction", "price", F.col("ts").alias("bid_time"))
    auctions = stream("auction").select("id", "category", F.col("ts").alias("opened"))
    longest = f"INTERVAL {task.longest} MICROSECONDS"
    near = f"auction = id AND bid_time >= opened AND bid_time <= opened + {longest}"
    made = bids.join(auctions, F.expr(near)).select("auction", "price", "category")
    totals = F.count(F.lit(1)), F.sum("price"), F.sum("category")
    return run_to_end(spark, made, dict(zip(ANSWERS, totals, strict=True)))


def main(task_file: str, result_file: str) -> None:
    task = Task(**json.loads(Path(task_file).read_text()))
    Path(result_file).write_text(json.dumps(perform(task)))


if __name__ == "__main__":
    main(*sys.argv[1:])
