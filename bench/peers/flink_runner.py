"""w1 and w2 with Flink SQL (PyFlink's table API, streaming mode, operators in the JVM)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from common import Task, main
from pyflink.table import EnvironmentSettings, TableEnvironment

TABLES = {
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, ts TIMESTAMP(6)",
    "auction": "id BIGINT, seller BIGINT, category BIGINT, initial_bid BIGINT, reserve BIGINT, ts TIMESTAMP(6), "
    "expires TIMESTAMP(6)",
}
QUERIES = {
    "w1": """SELECT COUNT(*), SUM(c), SUM(m), SUM(s) FROM (
        SELECT auction, COUNT(*) AS c, MAX(price) AS m, SUM(price) AS s
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))
        GROUP BY window_start, window_end, auction)""",
    "w2": """SELECT COUNT(*), SUM(b.price), SUM(a.category) FROM bid b JOIN auction a ON b.auction = a.id
        AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND""",
}
ANSWERS = {"w1": ("rows", "count", "max", "sum"), "w2": ("rows", "price", "category")}


def perform(task: Task) -> dict[str, int]:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table.get_config().set("parallelism.default", str(task["cores"]))
    table.get_config().set("pipeline.object-reuse", "true")
    with tempfile.TemporaryDirectory() as name:
        for stream, files in task["files"].items():
            folder = Path(name) / stream
            folder.mkdir()
            for file in files:
                (folder / Path(file).name).symlink_to(file)
            # Files are handed out in any order to the readers of a table; hence a watermark that allows for it.
            table.execute_sql(
                f"CREATE TABLE {stream} ({TABLES[stream]}, WATERMARK FOR ts AS ts - INTERVAL '10' MINUTE) "
                f"WITH ('connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'parquet')"
            )
        last = None
        with table.execute_sql(QUERIES[task["workload"]]).collect() as rows:
            for row in rows:  # a changelog: the last row is the total
                last = row
    assert last is not None
    return {name: int(value) for name, value in zip(ANSWERS[task["workload"]], last, strict=True)}


if __name__ == "__main__":
    main(perform)
