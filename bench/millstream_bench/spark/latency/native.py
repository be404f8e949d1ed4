"""The latency query with Spark's own operators, rows handed to a program by `foreachBatch`."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream_bench.spark.arrivals import SCHEMA, WINDOW
from millstream_bench.spark.settings import DEFAULT_STORE, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main(folder: str, output: str, stop: str, *, cores: int = 2) -> None:
    from pyspark.sql import functions as F

    spark = session(cores, DEFAULT_STORE)
    rows = spark.readStream.schema(SCHEMA).parquet(folder).withWatermark("ts", "0 seconds")
    counted = rows.groupBy(F.window("ts", f"{WINDOW} microseconds"), "auction").agg(
        F.count(F.lit(1)).alias("bids"), F.max("arrived").alias("newest")
    )
    result = counted.select(F.unix_micros("window.end").alias("end"), "auction", "bids", "newest")
    with (
        Path(output).open("w", buffering=1) as sink,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint,
    ):

        def hand_over(batch: DataFrame, _: int) -> None:
            received = [[row["end"], row["newest"], row["bids"]] for row in batch.collect()]
            sink.write(json.dumps({"at": time.time(), "rows": received}) + "\n")

        writer = result.writeStream.foreachBatch(hand_over).outputMode("append")
        running = writer.option("checkpointLocation", checkpoint).start()
        while running.isActive and not Path(stop).exists():
            time.sleep(0.1)
        failure = running.exception()
        running.stop()
    spark.stop()
    if failure is not None:
        raise failure


if __name__ == "__main__":
    main(*sys.argv[1:])
