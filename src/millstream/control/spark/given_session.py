"""A session that the program has, or one on a cluster: its workers must have Millstream, its log is spared what Spark
says at every start and stop of a job, and names of Spark's in statements get a hint."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from millstream import __version__
from millstream.control.spark.session import PACKAGE, current_session
from millstream.errors import MillstreamError, PlanError
from millstream.logical.bind.foreign_functions import INSTEAD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("millstream", "polars", "pyarrow", "msgspec", "datasketches")
LOOK = """
def look(names):
    import importlib.util
    import sys

    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        return sys.executable, missing, None
    from millstream import __version__

    return sys.executable, missing, __version__
"""
"""Run by a worker, which may have no Millstream to import it from."""
SPARED = (
    "Map state values doesn't contain key",  # the first batch of every shard
    "No more data to read from the socket",
    "Disabling AQE since AQE is not supported in stateful workloads",
    "Failed to cancel job group",  # a query stops between two batches
    "Incomplete task interrupted: Attempting to kill Python Worker",  # or within one
    "cancelled Query millstream-",
)
_prepared: set[str] = set()
"""The applications of Spark that are prepared."""


def prepare_session(spark: SparkSession) -> None:
    """Check the workers of a session and spare its log, once for each application of Spark."""
    if (name := spark.sparkContext.applicationId) not in _prepared:
        check_workers(spark)
        with suppress(Exception):  # the JVM may log in another way
            spare_log(spark)
        _prepared.add(name)


def check_workers(spark: SparkSession) -> None:
    """Raise PlanError unless Spark's workers can import this version of Millstream: a task looks."""
    context, made = spark.sparkContext, {"__name__": "__main__"}
    exec(LOOK, made)
    started = f"Spark starts it as '{context.pythonExec}', by PYSPARK_PYTHON when the session started."
    hint = f"PYSPARK_PYTHON={sys.executable} before the session starts"
    try:
        python, missing, version = context.parallelize([NEEDED], 1).map(made["look"]).first()
    except Exception as error:
        found = re.search(r"\[PYTHON_VERSION_MISMATCH\] ([^\n]*)|(Cannot run program [^\n]*)", str(error))
        reason = found[1] or found[2] if found else str(error).strip().partition("\n")[0]
        message = "the Python of Spark's workers cannot be used"
        raise PlanError("M3070", message, detail=f"{reason.rstrip('.')}. {started}", hint=hint) from error
    if os.path.realpath(python) == os.path.realpath(sys.executable) and missing == ["millstream"]:
        hint = f"PYTHONPATH={PACKAGE} before the session starts, or install Millstream"
    detail, install = f"Their Python is {python}. {started}", f"{hint}, or install millstream=={__version__} for it"
    if missing:
        message = f"Spark's workers have no {' and no '.join(missing)}"
        raise PlanError("M3070", message, detail=detail, hint=hint if "install" in hint else install)
    if version != __version__:
        message = f"Spark's workers have Millstream {version}, this program {__version__}"
        raise PlanError("M3071", message, detail=detail, hint=install)


def spare_log(spark: SparkSession) -> None:
    """Let the appenders of the JVM's log drop the lines that every job of Millstream causes."""
    log4j: Any = spark._jvm.org.apache.logging.log4j
    results = getattr(log4j.core, "Filter$Result")
    text = f"(?s).*({'|'.join(map(re.escape, SPARED))}).*"
    dropped = log4j.core.filter.RegexFilter.createFilter(text, None, False, results.DENY, results.NEUTRAL)
    dropped.start()
    for appender in log4j.LogManager.getContext(False).getConfiguration().getAppenders().values():
        appender.addFilter(dropped)


def with_hint(error: MillstreamError, given: SparkSession, own: SparkSession) -> MillstreamError:
    """An error about an unknown name, with a hint if Spark knows the name: the session that the program has given, the
    connection's own copy of it, or the active one."""
    named = re.fullmatch(r"unknown (stream|function) '(.+)'", error.message)
    if named is None or named[2].lower() in INSTEAD:
        return error
    for spark in (given, own, current_session()):
        with suppress(Exception):
            called = "mill.spark" if spark is own else "spark"
            if spark is not None and (hint := _hint(named[1], named[2], spark, called)):
                error.hint = hint
                break
    return error


def _hint(kind: str, name: str, spark: SparkSession, called: str) -> str:
    """A hint for the name of a stream or a function that a session knows; else empty."""
    if kind == "stream" and spark._jsparkSession.sessionState().catalog().getTempView(name).isDefined():
        table = f"{called}.table('{name}')"
        streaming = f"mill.stream('{name}', {table})"
        fixed = f"CREATE TABLE {name} (…), then mill.insert('{name}', {table})"
        return f"'{name}' is a view of Spark: {streaming if spark.table(name).isStreaming else fixed}"
    if kind == "function" and spark.catalog.functionExists(name):
        own = "mill.function registers a Python function"
        return f"'{name}' is a function of Spark: {own}, or call it on the DataFrame before or after (to_df)"
    return ""
