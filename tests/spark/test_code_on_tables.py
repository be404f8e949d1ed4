"""Python functions in statements that write tables, in Spark's workers, restarted."""

from __future__ import annotations

import importlib
from pathlib import Path

from pyspark.sql import SparkSession
from tests import python_functions

import millstream as ms

WRITES = """
CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts;
CREATE TABLE t (k BIGINT PRIMARY KEY, v DOUBLE);
CREATE QUERY puts AS INSERT INTO t SELECT k, v FROM s
  ON CONFLICT DO UPDATE SET v = spark_half(t.v) + spark_triple(excluded.v);
"""


def test_statements_on_tables(spark: SparkSession, tmp_path: Path) -> None:
    importlib.reload(python_functions)  # it registers its functions for this test
    with ms.connect(spark, checkpoint=tmp_path, shards=2, contracts="off") as mill:
        mill.sql(WRITES)
        mill.insert("s", [(1, 4.0, 1), (2, 8.0, 2), (1, 1.0, 3)])
        assert mill.sql("SELECT k, spark_half(v), spark_mean(v) FROM t GROUP BY k, v ORDER BY k").rows() == [
            (1, 2.5, 5.0),
            (2, 4.0, 8.0),
        ]
    with ms.connect(spark, checkpoint=tmp_path, shards=2, contracts="off") as mill:
        mill.insert("s", [(2, 2.0, 4)])
        mill.sql("UPDATE t SET v = spark_half(v) WHERE k = 2")
        assert mill.sql("SELECT k, v FROM t ORDER BY k").rows() == [(1, 5.0), (2, 5.0)]
