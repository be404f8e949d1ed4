"""w1 and w2 with Flink SQL (PyFlink's table API, streaming mode, operators in the JVM).

PyFlink brings no reader of parquet, so it gets the columns that it needs as CSV, written before the clock starts.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from common import COLUMNS, Task, main
from pyflink.table import EnvironmentSettings, TableEnvironment

TABLES = {
    "bid": "auction BIGINT, price BIGINT, ts TIMESTAMP(6)",
    "auction": "id BIGINT, category BIGINT, ts TIMESTAMP(6)",
}
QUERIES = {
    "w1": """SELECT COUNT(*), SUM(c), SUM(m), SUM(s) FROM (
        SELECT auction, COUNT(*) AS c, MAX(price) AS m, SUM(price) AS s
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(t), INTERVAL '10' SECOND))
        GROUP BY window_start, window_end, auction)""",
    "w2": """SELECT COUNT(*), SUM(b.price), SUM(a.category) FROM bid b JOIN auction a ON b.auction = a.id
        AND b.t BETWEEN a.t - INTERVAL '0.001' SECOND AND a.t + INTERVAL '10.001' SECOND
        AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND""",
}
ANSWERS = {"w1": ("rows", "count", "max", "sum"), "w2": ("rows", "price", "category")}


def convert(task: Task, folder: Path) -> None:
    from pyarrow import csv
    from pyarrow import parquet as pq

    options = csv.WriteOptions(include_header=False, quoting_style="none")
    for stream, files in task["files"].items():
        (folder / stream).mkdir()
        for file in files:
            rows = pq.read_table(file, columns=list(COLUMNS[stream]))
            csv.write_csv(rows, folder / stream / f"{Path(file).stem}.csv", options)


def perform(task: Task, folder: Path) -> dict[str, int]:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table.get_config().set("parallelism.default", str(task["cores"]))
    table.get_config().set("pipeline.object-reuse", "true")
    # The totals, which stand for a sink, are told once a while and not for every row.
    for name, value in {"enabled": "true", "allow-latency": "10 s", "size": "5000000"}.items():
        table.get_config().set(f"table.exec.mini-batch.{name}", value)
    for stream in task["files"]:
        # Its time attributes have milliseconds. Files are handed out in any order to the readers of a table; hence a
        # watermark that allows for it.
        table.execute_sql(
            f"CREATE TABLE {stream} ({TABLES[stream]}, "
            "t AS CAST(ts AS TIMESTAMP(3)), WATERMARK FOR t AS t - INTERVAL '10' MINUTE) "
            f"WITH ('connector' = 'filesystem', 'path' = 'file://{folder / stream}', 'format' = 'csv')"
        )
    last = None
    with table.execute_sql(QUERIES[task["workload"]]).collect() as rows:
        for row in rows:  # a changelog: the last row is the total
            last = row
    assert last is not None
    return {name: int(value) for name, value in zip(ANSWERS[task["workload"]], last, strict=True)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(partial(perform, folder=Path(name)), partial(convert, folder=Path(name)))
