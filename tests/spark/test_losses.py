"""Late and bad rows, and unbounded state, are said on Spark: of fed streams, connectors and DataFrames."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession
from tests.control.observe.test_losses import warned

import millstream as ms
from millstream.control.observe.losses import losses


def test_warnings_on_spark(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("k,ts\n1,900\n")
    (tmp_path / "in" / "2.csv").write_text("\n".join(["k,ts", *(f"{n},{n}" for n in range(100)), "x,901", "y,902"]))
    (tmp_path / "frame").mkdir()
    pl.DataFrame({"k": [1, 2, 3], "ts": [9, 5, 10]}).write_parquet(tmp_path / "frame" / "1.parquet")
    csv = f"WITH (connector = 'csv', path = '{tmp_path}/in', max_files_per_trigger = 1)"
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.sql(f"CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts {csv}")
        mill.sql("CREATE STREAM fed (k BIGINT, ts BIGINT) ORDER BY ts")
        frame = spark.readStream.schema("k bigint, ts bigint").parquet(str(tmp_path / "frame"))
        mill.stream("frame", frame, order_by="ts")
        mill.sql("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s GROUP BY k INTO none")
        mill.sql("CREATE QUERY f AS SELECT k FROM frame INTO none")
        (unbounded,) = warned(caplog)
        assert "M3030: the state of query 'q' can grow for ever" in unbounded
        mill.insert("fed", [(1, 10), (1, 4)])
        deadline, said = time.monotonic() + 200, list[str]()
        while len(said) < 4 and time.monotonic() < deadline:
            mill.await_end(0.2)
            said += warned(caplog)
        found = losses(mill.mill)
        assert {name: (held.accepted, held.late, held.bad) for name, held in found.items()} == {
            "s": (1, 100, 2),
            "fed": (1, 1, 0),
            "frame": (2, 1, 0),
        }
        first = sorted(text.partition("\n")[0] for text in said)
        assert first == [
            "M5060: stream 'fed': 1 of 2 rows are late (50.0 %)",
            "M5060: stream 'frame': 1 of 3 rows are late (33.3 %)",
            "M5060: stream 's': 100 of 103 rows are late (97.1 %)",
            "M5061: stream 's': 2 of 103 rows are bad (1.9 %)",
        ]
        assert any("order_by='ts', watermark='4'" in text for text in said)
        assert any("file with newer rows was read before one with older" in text for text in said)
        assert " 100 late, 2 bad," in str(mill.query("q").progress())
