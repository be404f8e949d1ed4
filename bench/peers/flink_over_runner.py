"""The mean of the last ten seconds of each sensor with Flink SQL (streaming mode, operators in the JVM).

PyFlink brings no reader of parquet, so it gets CSV, written before the clock starts: a file for each core, in the order
of time, with half of the sensors. So no reader runs ahead, and the watermark needs no delay.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from common import Task, main
from pyflink.table import EnvironmentSettings, TableEnvironment

TABLE = """CREATE TABLE readings (sensor BIGINT, `value` BIGINT, ms BIGINT,
    t AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR t AS t)
    WITH ('connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'csv')"""
QUERY = """SELECT COUNT(*), CAST(SUM(FLOOR(mean)) AS BIGINT) FROM (
    SELECT AVG(CAST(`value` AS DOUBLE)) OVER (PARTITION BY sensor ORDER BY t
        RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS mean FROM readings)"""


def convert(task: Task, folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import compute, csv
    from pyarrow import parquet as pq

    rows = pa.concat_tables(pq.read_table(file) for file in task["files"]["readings"])
    micros = compute.cast(rows["ts"], pa.int64())
    rows = rows.set_column(rows.column_names.index("ts"), "ms", compute.divide(micros, 1000))
    rest = compute.subtract(
        rows["sensor"], compute.multiply(compute.divide(rows["sensor"], task["cores"]), task["cores"])
    )
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    for core in range(task["cores"]):
        part = rows.filter(compute.equal(rest, core)).select(["sensor", "value", "ms"])
        csv.write_csv(part, folder / f"{core}.csv", options)


def perform(task: Task, folder: Path) -> dict[str, int]:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table.get_config().set("parallelism.default", str(task["cores"]))
    table.get_config().set("pipeline.object-reuse", "true")
    # The totals, which stand for a sink, are told once a while and not for every row.
    for name, value in {"enabled": "true", "allow-latency": "10 s", "size": "5000000"}.items():
        table.get_config().set(f"table.exec.mini-batch.{name}", value)
    table.execute_sql(TABLE.format(folder=folder))
    last = None
    with table.execute_sql(QUERY).collect() as rows:
        for row in rows:  # a changelog: the last row is the total
            last = row
    assert last is not None
    return {name: int(value) for name, value in zip(("rows", "mean"), last, strict=True)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(partial(perform, folder=Path(name)), partial(convert, folder=Path(name)))
