"""The same aggregates with Millstream, in a process of its own: built in, as a body of SQL, as a class."""

from __future__ import annotations

import json
import sys
from bisect import bisect_left, insort
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream_bench.spark.throughput.mill import SETTINGS, linked, run_to_end

MEAN = """
CREATE WINDOW AGGREGATE {name}(next BIGINT) : DOUBLE
{{ TABLE state(total BIGINT, cnt BIGINT); TABLE inwindow(w BIGINT);
  INITIALIZE: {{ INSERT INTO state VALUES (next, 1); INSERT INTO RETURN VALUES (next); }}
  ITERATE:    {{ UPDATE state SET total = total + next, cnt = cnt + 1;
                INSERT INTO RETURN SELECT total / cnt FROM state {condition}; }}
  EXPIRE:     {{ UPDATE state SET total = total - oldest().w, cnt = cnt - 1; }} }}
"""
TOP = """
CREATE WINDOW AGGREGATE sql_top(next BIGINT) : BIGINT
{ TABLE inwindow(w BIGINT);
  INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT w FROM inwindow ORDER BY w DESC LIMIT 3; } }
"""
BODIES = (
    MEAN.format(name="sql_mean", condition=""),
    MEAN.format(name="loop_mean", condition="WHERE total IS NOT NULL"),  # needless, but keeps it from columns
    TOP,
)


class PythonMean:
    def __init__(self) -> None:
        self.total, self.count = 0, 0

    def iterate(self, x: int) -> None:
        self.total, self.count = self.total + x, self.count + 1

    def expire(self, x: int) -> None:
        self.total, self.count = self.total - x, self.count - 1

    def terminate(self) -> float:
        return self.total / self.count


class PythonTop:
    def __init__(self) -> None:
        self.values: list[int] = []

    def iterate(self, x: int) -> None:
        insort(self.values, x)

    def expire(self, x: int) -> None:
        del self.values[bisect_left(self.values, x)]

    def terminate(self) -> int:
        return self.values[:-4:-1]  # type: ignore[return-value]  # a list is a row for each


CLASSES = {"python_mean": PythonMean, "python_top": PythonTop}


@dataclass(frozen=True, slots=True)
class Task:
    call: str
    what: str
    files: list[str]
    files_per_batch: int
    cores: int


def perform(task: Task) -> dict[str, Any]:
    from millstream import connect

    folder = linked("readings", task.files)
    with connect(master=f"local[{task.cores}]", settings=SETTINGS) as mill:
        for name, code in CLASSES.items():
            mill.aggregate(code, name=name)
        options = f"max_files_per_trigger = '{task.files_per_batch}', max_rows_per_trigger = '100000000', once = 'true'"
        mill.sql(
            "CREATE STREAM readings (sensor BIGINT NOT NULL, value BIGINT NOT NULL, ts TIMESTAMP) ORDER BY ts "
            f"WITH (connector = 'parquet', path = '{folder}', {options})"
        )
        for body in BODIES:
            mill.sql(body)
        window = "PARTITION BY sensor RANGE 10 SECONDS PRECEDING"
        query = f"SELECT sensor, ts, {task.call}(value) OVER ({window}) AS x FROM readings"
        exact = f"SELECT sensor, ts, CAST(FLOOR(x) AS BIGINT) AS {task.what} FROM ({query})"
        return run_to_end(mill, exact, ("rows", task.what))


def main(task_file: str, result_file: str) -> None:
    task = Task(**json.loads(Path(task_file).read_text()))
    Path(result_file).write_text(json.dumps(perform(task)))


if __name__ == "__main__":
    main(*sys.argv[1:])
