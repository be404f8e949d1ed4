"""A process that feeds queries as it is told, one line of JSON each; `python worker.py SPARK CORES SHARDS`.

| task | |
|---|---|
| `setup`, `query` | statements, and the query |
| `plan` | a file with deliveries: rows, prods and punctuations (`tools/written.py`) |
| `scale` | seconds of the stream in a second; 0: as fast as possible |
| `finals` | the number of final rows after which the run ends |
| `keep` | a file for the rows, with the time `at` of their production in seconds of the stream |
| `rate` | tuples per second of the function `costly`, which waits |
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl

from millstream_bench.prodding.tools import written
from millstream_bench.prodding.tools.driving import feed
from millstream_bench.prodding.tools.streamer import paced

LONGEST = 120.0
"""Seconds until a run is given up."""


class Rows:
    """A sink that notes when rows arrive."""

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []
        self.finals = 0

    def __call__(self, batch: int, rows: pl.DataFrame) -> None:
        if rows.height:
            self.frames.append(rows.with_columns(pl.lit(time.time()).alias("at")))
            self.finals += rows.filter(pl.col("finality") == "final").height


def costly(rate: float) -> Any:
    """A function of a column that waits for each value, as for another system."""

    def look_up(values: pl.Series) -> pl.Series:
        time.sleep(len(values) / rate)
        return values

    return look_up


def run(mill: Any, task: dict[str, Any], number: int) -> dict[str, Any]:
    if "rate" in task and not number:
        options = {"name": "costly", "arguments": ["DOUBLE"], "returns": "DOUBLE", "vectorized": "polars"}
        mill.function(costly(task["rate"]), **options)
    for statement in task["setup"]:
        mill.sql(statement)
    deliveries = written.read(Path(task["plan"]))
    sink = Rows()
    query = mill.sql(task["query"]).start(sink, name=f"q_{number}")
    began, cpu = time.time(), time.process_time()
    scale = task["scale"]
    for delivery in paced(deliveries, scale=scale) if scale else deliveries:
        feed(mill, delivery)
    deadline = time.monotonic() + LONGEST
    while sink.finals < task["finals"]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{sink.finals} of {task['finals']} final rows")
        mill.check()
        if not mill._work() if task["local"] else True:
            time.sleep(0.02)
    ended, spent = time.time(), time.process_time() - cpu
    query.stop()
    mill.sql("DROP STREAM s")
    rows = pl.concat(sink.frames)
    if task.get("keep"):
        rows.with_columns((pl.col("at") - began) * (scale or 1)).write_parquet(task["keep"])
    finals = rows.filter(pl.col("finality") == "final").drop("at", "finality", "revision", strict=False)
    return {
        "began": began,
        "ended": ended,
        "cpu_s": spent,
        "rows": {"all": rows.height, "final": finals.height, "digest": int(finals.hash_rows().sum() % 2**52)},
        "operators": {},
        "sent": 0,
    }


def main(spark: str, cores: str, shards: str) -> None:
    import millstream as ms

    out = sys.stdout
    sys.stdout = sys.stderr  # what others print is no result
    local = spark != "True"
    with ms.connect(**({"local": True} if local else {"master": f"local[{cores}]"}), shards=int(shards)) as mill:
        print(json.dumps({"millstream": str(Path(ms.__file__).parent)}), file=out, flush=True)
        for number, line in enumerate(sys.stdin):
            try:
                answer = run(mill, json.loads(line) | {"local": local}, number)
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
