"""The aggregates of `by_hand` in a process of its own."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream_bench.aggregates.spark import by_hand
from millstream_bench.spark.settings import ROCKSDB, session
from millstream_bench.spark.throughput.native import run_to_end

SCHEMA = "sensor BIGINT, value BIGINT, ts TIMESTAMP"
PROCESSORS: dict[str, Any] = {"mean": by_hand.WindowMean, "top": by_hand.WindowTop}


@dataclass(frozen=True, slots=True)
class Task:
    what: str
    folder: str
    files_per_batch: int
    cores: int


def perform(task: Task) -> dict[str, Any]:
    from pyspark.sql import functions as F

    spark = session(task.cores, ROCKSDB)  # transformWithState needs it
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
    readings = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", task.files_per_batch).parquet(task.folder)
    processor = PROCESSORS[task.what]
    made = readings.groupBy("sensor").transformWithStateInPandas(processor(), processor.returns, "append", "none")
    return run_to_end(spark, made, {"rows": F.count(F.lit(1)), task.what: F.sum(F.floor(task.what))})


def main(task_file: str, result_file: str) -> None:
    task = Task(**json.loads(Path(task_file).read_text()))
    Path(result_file).write_text(json.dumps(perform(task)))


if __name__ == "__main__":
    main(*sys.argv[1:])
