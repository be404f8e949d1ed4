"""The same three queries with Spark's own operators, in a process of its own. They cannot be told what to omit."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from millstream_bench.feedback.sizes import Sizes
from millstream_bench.spark.processes import Sampler
from millstream_bench.spark.settings import DEFAULT_STORE, session
from millstream_bench.spark.subject import SubjectFailed, environment

SENSOR = "sensor_id BIGINT, volume BIGINT, speed BIGINT, occupancy BIGINT, ts TIMESTAMP"
PROBE = "probe_id BIGINT, freeway_id BIGINT, milepost BIGINT, speed BIGINT, ts TIMESTAMP"
LOCATION = "sensor_id BIGINT, freeway_id BIGINT, milepost BIGINT"


def measured(folder: Path, sizes: Sizes) -> dict[str, dict[str, float]]:
    """CPU and wall seconds of each query, after a warm-up."""
    with tempfile.TemporaryDirectory(prefix="millstream-native-", ignore_cleanup_errors=True) as name:
        result, log = Path(name) / "result.json", Path(name) / "log"
        command = [sys.executable, "-m", __name__, str(folder), str(result), str(sizes.cores)]
        with log.open("w") as file:
            child = subprocess.Popen(command, cwd=name, env=environment(), stdout=file, stderr=file)
            with Sampler(child.pid) as sampler:
                status = child.wait()
        if status != 0:
            raise SubjectFailed(f"Spark's own operators: {log.read_text(errors='replace')[-2000:]}")
        made: dict[str, dict[str, float]] = json.loads(result.read_text())
    return {
        query: {"wall_s": one["ended"] - one["began"],
                "cpu_s": sum(sampler.record.between(one["began"], one["ended"]).values())}
        for query, one in made.items()
    }  # fmt: skip


def queries(spark: Any, folder: str) -> dict[str, Any]:
    from pyspark.sql import functions as F

    def stream(name: str, schema: str) -> Any:
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(f"{folder}/{name}").withWatermark("ts", "0 seconds")

    def means(name: str, schema: str, title: str) -> Any:
        grouped = stream(name, schema).groupBy(F.window("ts", "1 minute").alias("w"))
        return grouped.agg(F.avg("speed").alias(title))

    sensor, location = stream("sensor", SENSOR), spark.read.schema(LOCATION).parquet(f"{folder}/location.parquet")
    chosen = ["sensor_id", "volume", "speed", "ts"]
    first, second = sensor.where("occupancy > 30").select(chosen), stream("sensor", SENSOR).where("speed > 42")
    placed = sensor.join(location, "sensor_id").groupBy(F.window("ts", "1 minute"), "freeway_id", "milepost")
    return {
        "Q1": first.union(second.select(chosen)),
        "Q2": placed.agg(F.max("speed")),
        "Q3": means("sensor", SENSOR, "sensors").join(means("probe", PROBE, "probes"), "w"),
    }


def main(folder: str, result: str, cores: str) -> None:
    spark = session(int(cores), DEFAULT_STORE)
    made: dict[str, dict[str, float]] = {}
    for number, (name, frame) in enumerate([("", queries(spark, folder)["Q1"]), *queries(spark, folder).items()]):
        began = time.time()
        writer = frame.writeStream.format("noop").option("checkpointLocation", f"checkpoint-{number}")
        writer.trigger(availableNow=True).start().awaitTermination()
        if name:
            made[name] = {"began": began, "ended": time.time()}
    Path(result).write_text(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
