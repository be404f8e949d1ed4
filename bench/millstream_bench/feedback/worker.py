"""A process that runs queries as it is told, one line of JSON each, with any version of Millstream.

It is started by path, not as a module, so that `PYTHONPATH` decides which Millstream it imports; it uses the public
interface only. `python worker.py SPARK CORES SHARDS` reads tasks from its standard input and writes results to its
standard output:

| task | |
|---|---|
| `setup`, `queries` | statements, and the text of each query by name |
| `settings` | options of Millstream that are set first |
| `feedback` | for some queries, feedback that is sent before they read anything |
| `each_batch` | feedback that is sent to a query after every batch |
| `keep` | for some queries, a file for their rows |
| `loops` | the cost of the function `costly` |
"""

from __future__ import annotations

import gc
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl


class Rows:
    """A sink that counts the rows of a query, and keeps them if they are needed."""

    def __init__(self, keep: str | None) -> None:
        self._keep = keep
        self._frames: list[pl.DataFrame] = []
        self.count = 0

    def __call__(self, batch: int, rows: pl.DataFrame) -> None:
        self.count += rows.height
        if self._keep is not None:
            self._frames.append(rows)

    def write(self, schema: Any) -> None:
        if self._keep is not None:
            frames = self._frames or [pl.DataFrame(schema=list(schema.names))]
            pl.concat(frames).write_parquet(self._keep)


def costly(loops: int) -> Any:
    """A function of a column that takes long: a sum for each value."""

    def estimate(sensor: pl.Series) -> pl.Series:
        for _ in range(len(sensor)):
            sum(range(loops))
        return sensor % 30 + 40

    return estimate


def run(mill: Any, task: dict[str, Any], number: int) -> dict[str, Any]:
    for setting in task.get("settings", ()):
        mill.sql(setting)
    if "loops" in task:
        options = {"name": "costly", "arguments": ["BIGINT"], "returns": "BIGINT", "vectorized": "polars"}
        mill.function(costly(task["loops"]), **options)
    for statement in task["setup"]:
        mill.sql(statement)
    sinks = {name: Rows(task.get("keep", {}).get(name)) for name in task["queries"]}
    gc.collect()
    began, cpu = time.time(), time.process_time()
    queries = {}
    with mill.together():
        for name, text in task["queries"].items():
            queries[name] = mill.sql(text).start(sinks[name], name=f"{name}_{number}")
            for said in task.get("feedback", {}).get(name, ()):
                queries[name].feedback(said)
    sent = _await(mill, queries, task.get("each_batch", {}))
    ended, spent = time.time(), time.process_time() - cpu
    operators = {name: _operators(query) for name, query in queries.items()}
    for name, query in queries.items():
        sinks[name].write(query.schema)
        query.stop()
    for kind, made in reversed(re.findall(r"CREATE (STREAM|TABLE) (\w+)", " ".join(task["setup"]))):
        mill.sql(f"DROP {kind} {made}")
    rows = {name: sink.count for name, sink in sinks.items()}
    return {"began": began, "ended": ended, "cpu_s": spent, "rows": rows, "operators": operators, "sent": sent}


def _await(mill: Any, queries: dict[str, Any], each_batch: dict[str, str]) -> int:
    """Wait for the end, and send feedback after every batch; return the number of messages."""
    seen: dict[str, int] = {}
    sent = 0

    def poll() -> None:
        nonlocal sent
        for name, said in each_batch.items():
            last = queries[name].progress().batch
            if seen.get(name) != last:
                seen[name] = last
                sent += 1
                queries[name].feedback(said.format(sent))

    mill.await_end(poll=poll)
    return sent


def _operators(query: Any) -> dict[str, list[int]]:
    """For each kind of operator: tuples in, tuples out, and tuples that feedback made it drop."""
    found: dict[str, list[int]] = {}
    for each in query.progress().operators:
        reading = each.reading
        mine = found.setdefault(reading.kind, [0, 0, 0])
        for place, count in enumerate((reading.tuples_in, reading.tuples_out, getattr(reading, "disclaimed", 0))):
            mine[place] += count
    return found


def main(spark: str, cores: str, shards: str) -> None:
    import millstream as ms

    out = sys.stdout
    sys.stdout = sys.stderr  # what others print is no result
    settings = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
    on_spark = {"master": f"local[{cores}]", "settings": settings}
    with ms.connect(**(on_spark if spark == "True" else {"local": True}), shards=int(shards)) as mill:
        print(json.dumps({"millstream": str(Path(ms.__file__).parent)}), file=out, flush=True)
        for number, line in enumerate(sys.stdin):
            try:
                answer = run(mill, json.loads(line), number)
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
