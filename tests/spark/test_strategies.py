"""Strategies and breaks reach the shards on Spark."""

from pathlib import Path

from pyspark.sql import SparkSession

import millstream as ms
from millstream.control.connection import Connection

ROWS = [(v, 2, v) for v in range(40)]


def operators(mill: Connection) -> dict[str, tuple[set[str], int]]:
    """The macros and the number of steps of each kind of operator, over all shards that have reported."""
    found: dict[str, tuple[set[str], int]] = {}
    for _, _, status in mill.mill.reports("q"):
        for reading in status.operators.values():
            if reading.macro:
                macros, steps = found.get(reading.kind, (set(), 0))
                found[reading.kind] = macros | {reading.macro}, steps + reading.steps
    return found


def test_a_strategy_reaches_the_shards_and_survives(spark: SparkSession, tmp_path: Path) -> None:
    steps: dict[str, int] = {}
    for strategy in ("dfs", "batch:64"):
        folder = tmp_path / strategy.partition(":")[0]
        with ms.connect(spark, checkpoint=folder, shards=2, page_rows=2) as mill:
            mill.sql("CREATE STREAM a (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
            mill.sql("CREATE STREAM b (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
            mill.sql("CREATE QUERY q AS SELECT k FROM a WHERE v > 1 UNION ALL SELECT k FROM b WHERE v > 1")
            mill.sql(f"SET strategy = '{strategy}; q.union: bfs'; SET breaks = 'q.project'")
            mill.sql("CREATE QUERY r AS SELECT v FROM a WHERE k > 5 UNION ALL SELECT v FROM b")
            mill.insert("a", ROWS)
            assert len(mill.query("q").take()) == 0
            found = operators(mill)
            prefix = "DFS" if strategy == "dfs" else "KB"
            assert found["Union"][0] == {"BFS-Source-Sink"}
            assert found["Pipeline"][0] == {f"{prefix}-Source-Sink"}
            steps[strategy] = found["Pipeline"][1]
    assert steps["batch:64"] < steps["dfs"] / 4
    with ms.connect(spark, checkpoint=tmp_path / "dfs", shards=2, page_rows=2) as mill:
        mill.insert("b", [(50, 2, 50)])
        assert sorted(mill.query("q").take().rows()) == [(k,) for k, _, _ in ROWS]
        assert "BFS-Source-Sink" in operators(mill)["Union"][0]
