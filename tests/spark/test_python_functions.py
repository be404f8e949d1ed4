"""Python functions and aggregates in Spark's workers: code of modules, of notebooks, after a restart, when it fails."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests import python_functions

import millstream as ms
from millstream.algebra.python import code as codes
from millstream.errors import BindError, OperatorError, PlanError

STREAM = "CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts"
MEANS = "SELECT k, spark_mean(v) OVER (PARTITION BY k ROWS 1 PRECEDING) AS x FROM s"


def notebook(text: str) -> Callable[..., Any]:
    """A function of a notebook: its module is `__main__`, which the workers do not have."""
    space: dict[str, Any] = {"__name__": "__main__", "FACTOR": 10}
    exec(text, space)
    found: Callable[..., Any] = space["inverse"]
    return found


def inverse(body: str) -> Callable[..., Any]:
    return notebook(f"def inverse(x: float) -> float:\n    return {body}")


def test_functions_on_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.reload(python_functions)  # it registers its functions for this test
    with ms.connect(spark, checkpoint=tmp_path, shards=2) as mill:
        mill.function(inverse("FACTOR / x"))
        mill.sql(STREAM)
        mill.sql("CREATE QUERY first AS SELECT k, inverse(v) AS x FROM s WHERE spark_half(v) < 100")
        mill.insert("s", [(1, 2.0, 1), (2, 400.0, 1)])
        assert mill.query("first").take().rows() == [(1, 5.0)]

        # A function that is registered while the job runs restarts it; nothing is lost and nothing comes twice.
        mill.function(lambda x: x + 1, name="later", arguments=["DOUBLE"], returns="DOUBLE")
        mill.sql("CREATE QUERY second AS SELECT later(spark_triple(v)) AS x FROM s")
        mill.sql(f"CREATE QUERY means AS {MEANS}")
        mill.insert("s", [(1, 4.0, 2), (1, 6.0, 3), (2, 8.0, 4)])
        assert sorted(mill.query("first").take().rows()) == [(1, 10 / 6), (1, 2.5), (2, 1.25)]
        assert sorted(mill.query("second").take().rows()) == [(13.0,), (19.0,), (25.0,)]
        assert sorted(mill.query("means").take().rows()) == [(1, 4.0), (1, 5.0), (2, 8.0)]

        # What cannot be pickled is refused before the query starts.
        lock = __import__("threading").Lock()
        mill.function(lambda x: x * lock.locked(), name="locked", arguments=["DOUBLE"], returns="DOUBLE")
        with pytest.raises(BindError, match="M2112: function 'locked' cannot be sent to Spark's workers"):
            mill.sql("CREATE QUERY third AS SELECT locked(v) AS x FROM s")

    later = codes.find_code
    monkeypatch.setattr(codes, "_CODE", {r: c for r, c in codes._CODE.items() if r.name.startswith("spark_")})
    assert later is codes.find_code

    with ms.connect(spark, checkpoint=tmp_path, shards=2, resume=False) as mill:
        with pytest.raises(PlanError, match=r"M3070: function inverse \(__main__.inverse\) of query 'first'"):
            mill.resume()
        mill.function(lambda x: x + 1, name="later", arguments=["DOUBLE"], returns="DOUBLE")
        mill.function(inverse("-FACTOR / x"))
        with pytest.raises(PlanError, match="M3071: function inverse"):
            mill.resume()
        mill.function(inverse("FACTOR / x"))
        mill.resume()
        mill.insert("s", [(1, 10.0, 5)])
        assert mill.query("means").take().rows() == [(1, 8.0)]
        assert mill.query("first").take().rows() == [(1, 1.0)]
        mill.insert("s", [(1, 0.0, 6)])
        with pytest.raises(OperatorError) as caught:
            mill.query("first").take()
        assert "of query first failed on a row of stream s (k = 1, v = 0.0, ts = 6)" in caught.value.message
        assert "function inverse(0.0) raised ZeroDivisionError: float division by zero" in caught.value.message
        assert mill.query("means").take().rows() == [(1, 5.0)]  # other queries go on

    with ms.connect(spark, checkpoint=tmp_path, shards=2, resume=False) as mill:
        mill.function(lambda x: x + 1, name="later", arguments=["DOUBLE"], returns="DOUBLE")
        mill.function(inverse("FACTOR / x if x else 0.0"))
        mill.resume(changed=True)
        mill.query("first").start()
        mill.insert("s", [(1, 0.0, 7)])
        assert mill.query("first").take().rows() == [(1, 0.0)]
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"cloudpickle" not in held and b"FACTOR" not in held


def test_a_dataframe_of_a_query_that_calls_a_function(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("v\n3\n5\n")
    with ms.connect(spark, shards=2) as mill:
        mill.function(inverse("FACTOR / x"))
        mill.sql(f"CREATE STREAM r (v DOUBLE) WITH (connector = 'csv', path = '{tmp_path}/rows.csv', once = 'true')")
        frame = mill.sql("SELECT inverse(v) AS x FROM r").to_df()
        running = frame.writeStream.format("memory").queryName("inverses").start()
        running.processAllAvailable()
        running.stop()
        assert sorted(row.x for row in mill.spark.table("inverses").collect()) == [2.0, 10 / 3]  # type: ignore[union-attr]
