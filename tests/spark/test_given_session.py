"""A session that the program has: its workers are checked, its log is spared, its names get a hint."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.control.spark.given_session import check_workers, spare_log
from millstream.control.spark.job import Stopped
from millstream.errors import BindError, PlanError

BARE = """#!/bin/sh
PYTHONPATH=$(echo "$PYTHONPATH" | tr : '\\n' | grep spark | tr '\\n' :) exec python3 -S "$@"
"""
"""A Python that has PySpark alone."""


def test_workers_without_millstream_are_found_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_workers(spark)
    context: Any = spark.sparkContext
    bare = tmp_path / "bare"
    bare.write_text(BARE)
    bare.chmod(0o755)
    for python, said in [
        (str(bare), r"M3070: Spark's workers have no millstream and no polars .*\n  Their Python is /.*bare"),
        ("/no/python", r"M3070: the Python of Spark's workers cannot be used\n  Cannot run program .*/no/python"),
    ]:
        monkeypatch.setattr(context, "pythonExec", python)
        with pytest.raises(PlanError, match=said) as caught:
            check_workers(spark)
        assert "PYSPARK_PYTHON=" in caught.value.hint
    monkeypatch.undo()
    monkeypatch.setattr("millstream.control.spark.given_session.__version__", "0.0.1")
    with pytest.raises(PlanError, match=r"M3071: Spark's workers have Millstream .*, this program 0.0.1"):
        check_workers(spark)


def test_the_log_has_what_is_not_of_every_job(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    log4j, lines = jvm.org.apache.logging.log4j, jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.newBuilder().setTarget(lines).setName("test").build()
    appender.start()
    config = log4j.LogManager.getContext(False).getConfiguration()
    config.addAppender(appender)
    config.getRootLogger().addAppender(appender, None, None)
    try:
        spare_log(spark)
        log = log4j.LogManager.getLogger("org.example")
        log.warn("Failed to cancel job group 1. Cannot find active jobs for it.")
        log.warn("of the program")
    finally:
        config.getRootLogger().removeAppender("test")
    assert str(lines.toString()).strip() == "of the program"


def test_a_job_that_is_stopped_has_not_failed(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    found = getattr(jvm.org.apache.spark.sql.execution.streaming.runtime, "StreamExecution$")
    execution = getattr(found, "MODULE$")
    interrupted = jvm.py4j.Py4JException(f"An exception was raised by the Python Proxy: job.Stopped: {Stopped()}")
    assert execution.isInterruptionException(interrupted, spark.sparkContext._jsc.sc())


def test_names_of_spark_get_a_hint(spark: SparkSession) -> None:
    spark.range(2).selectExpr("id AS k", "id * 1.5 AS v").createOrReplaceTempView("fixed")
    spark.readStream.format("rate").load().createOrReplaceTempView("flowing")
    spark.udf.register("twice", lambda x: 2 * x)
    with ms.connect(spark, shards=1) as mill:
        mill.sql("CREATE STREAM s (k BIGINT); CREATE TABLE t (k BIGINT, v DOUBLE)")
        for text, hint in [
            ("SELECT k FROM fixed", r"insert\('fixed', spark.table\('fixed'\)\)"),
            ("CREATE QUERY q AS SELECT value FROM flowing", r"mill.stream\('flowing', spark.table\('flowing'\)\)"),
            ("SELECT twice(k) FROM s", "'twice' is a function of Spark: mill.function"),
            ("SELECT nvl(k, 0) FROM s", r"^COALESCE"),
        ]:
            with pytest.raises(BindError) as caught:
                mill.sql(text)
            assert re.search(hint, caught.value.hint)
        mill.sql("SELECT k FROM s").start()
        mill.spark.createDataFrame([(1,)], ["k"]).createOrReplaceTempView("own")  # type: ignore[union-attr]
        spark.range(1).createOrReplaceTempView("later")  # the copy of the session is the active one now
        for name, table in [("own", "mill.spark.table"), ("later", "'later', spark.table"), ("fixed", "spark.table")]:
            with pytest.raises(BindError, match=table):
                mill.sql(f"SELECT k FROM {name}")
        with ms.connect(spark, shards=1) as other:
            other.sql("CREATE STREAM s (k BIGINT)")
            other.sql("SELECT k FROM s").start()
        mill.insert("t", spark.table("fixed"))
        assert mill.sql("SELECT k, v FROM t").rows() == [(0, 0.0), (1, 1.5)]  # type: ignore[attr-defined]
