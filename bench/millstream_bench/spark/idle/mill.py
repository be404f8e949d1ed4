"""Idle-waiting through a connection: the two queries with each way of promising time."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import polars as pl

from millstream_bench.spark.idle.feed import COLUMNS, QUERIES, REACH, WINDOW, Arrivals, Feed, case

MODES = {"on demand": "demand", "heartbeat 1 s": "heartbeat", "none": "none"}
COUNTED = "SELECT window_end, COUNT(*) AS n, MAX(ts) AS newest FROM ({rows}) made [RANGE {window} MICROSECONDS]"
ROWS = {
    "union": "SELECT ts FROM a UNION ALL SELECT ts FROM b",
    "join": f"SELECT a.ts FROM a [NOW] JOIN b [RANGE {REACH} MICROSECONDS] ON a.k = b.k",
}
SQL = {name: COUNTED.format(rows=rows, window=WINDOW) for name, rows in ROWS.items()}


def main(settle: str, seconds: str, result: str) -> None:
    from millstream import connect
    from millstream.control.spark.session import start_session

    spark, made = start_session("local[2]"), []
    for query in QUERIES:
        for mode, ets in MODES.items():
            arrivals = Arrivals()

            def sink(batch: int, rows: pl.DataFrame, arrivals: Arrivals = arrivals) -> None:
                arrivals.note(rows.get_column("newest").to_physical().to_list())

            with (
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name,
                connect(spark, ets=ets, heartbeat=1.0) as mill,
                Feed(Path(name)),
            ):
                for stream in ("a", "b"):
                    options = f"connector = 'parquet', path = '{name}/{stream}'"
                    mill.sql(f"CREATE STREAM {stream} ({COLUMNS}) ORDER BY current_time WITH ({options})")
                mill.sql(SQL[query]).start(sink)
                made.append(case(query, mode, arrivals, float(settle), float(seconds)))
                mill.check()
    spark.stop()
    Path(result).write_text(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
