"""Early answers on Spark that depend on how good earlier ones were: a lead that keeps the accuracy, and a quality
function that workers call. Both survive a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import millstream as ms
from millstream.algebra.qualities import Qualities

WINDOW = 100
CLOSE = """
BASE = 50
def close(early: int, final: int, gap: float) -> float:
    return BASE + early - final + gap
"""
QUERIES = """
CREATE QUERY kept AS SELECT window_end, k, COUNT(*) AS n, complete, finality FROM s [RANGE 100] GROUP BY k
    EMIT EARLY WITH ACCURACY 88 %;
CREATE QUERY judged AS SELECT window_end, COUNT(*) AS n, finality FROM s [RANGE 100]
    EMIT EARLY 10 SECONDS BEFORE END QUALITY close
"""


def close() -> Callable[..., Any]:
    """A function of a notebook: its module is `__main__`, which the workers do not have."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(CLOSE, space)
    found: Callable[..., Any] = space["close"]
    return found


def feed(mill: ms.Connection, *windows: int) -> list[tuple[int, float]]:
    """Insert windows with a tuple at each instant; return window and share of the early rows of one group."""
    mill.insert("s", [(WINDOW * window + at, at % 2) for window in windows for at in range(WINDOW)])
    rows = mill.query("kept").take().rows()
    return [(end, share) for end, k, _, share, finality in rows if finality == "early" and k == 0]


def test_a_lead_and_a_quality_survive_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    with ms.connect(spark, checkpoint=tmp_path, shards=2) as mill:
        mill.function(close())
        mill.sql("CREATE STREAM s (ts BIGINT, k BIGINT) ORDER BY ts")
        for statement in QUERIES.split(";"):
            mill.sql(statement)
        assert feed(mill, *range(5)) == [(WINDOW * (window + 1), 0.8) for window in range(5)]
        # A count at an even rate has an accuracy of 100 % less the lead, which is 20 % at first.
        kept, judged = (mill.query(name) for name in ("kept", "judged"))
        assert kept.progress().lead == 10
        assert feed(mill, 5) == [(600, 0.9)]
        found = judged.progress().accuracy
        # 90 of 100 tuples, 10 s before the end: 50 - 10 + 10.
        assert found.all == found.last == Qualities(5, 250.0, 50.0, 0)
        assert kept.progress().accuracy.last == Qualities(10, 800.0, 80.0, 0)

    with ms.connect(spark, checkpoint=tmp_path, shards=2, resume=False) as mill:
        mill.function(close())
        mill.resume()
        assert feed(mill, 6) == [(700, 0.9)]
        kept, judged = (mill.query(name) for name in ("kept", "judged"))
        assert kept.progress().lead == 10
        assert kept.progress().accuracy.last == Qualities(12, 980.0, 80.0, 0)
        assert judged.progress().accuracy.all == Qualities(6, 300.0, 50.0, 0)
