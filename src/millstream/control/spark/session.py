"""A Spark session set up for pages: cheap commits, RocksDB, a quiet JVM, workers that find this interpreter."""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream import scratch
from millstream.control.observe.log_file import check_format, open_log, wrapped
from millstream.control.spark import class_archive as archive
from millstream.control.spark.environment import check_java, check_master, starting
from millstream.control.spark.launcher import interpreter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STREAMING = "spark.sql.streaming"
_STATE = "org.apache.spark.sql.execution.streaming.state"
_CHECKPOINT = "org.apache.spark.sql.execution.streaming.checkpointing"
LOGGING = {
    "text": Path(__file__).parent / "log4j2.properties",
    "json": Path(__file__).parent / "log4j2-json.properties",
}
LOOPBACK = "127.0.0.1"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
PACKAGE = Path(__file__).parents[3]
"""The folder that has the package `millstream`."""

QUERY_SETTINGS = {
    # Queries read these when they start, so they can be set on a session that the caller has made.
    f"{_STREAMING}.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
    f"{_STREAMING}.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Every attempt at a batch writes state under a name of its own, and the commit names the valid one: a task that
    # outlives its query must not mix its state with that of the next attempt.
    f"{_STREAMING}.stateStore.checkpointFormatVersion": "2",
    f"{_STREAMING}.checkpointFileManagerClass": f"{_CHECKPOINT}.FileSystemBasedCheckpointFileManager",
    f"{_STREAMING}.checkpoint.fileChecksum.enabled": "false",
    f"{_STREAMING}.metricsEnabled": "false",
    "spark.sql.adaptive.enabled": "false",
}
SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The driver keeps what its UI would show, by default of the last thousand batches.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.driver.memory": "2g",
    "spark.python.worker.reuse": "true",
}
LOCAL_SETTINGS = {
    # Between processes of one machine, compression gains nothing.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    # The driver's ports admit this machine alone.
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
}
ATTEMPTS = 4
"""Number of times a task is tried on this machine, as on a cluster."""
JAVA = (
    "-Djdk.lang.Process.launchMechanism=VFORK",
    "-Xss16m",
    "-XX:+UseSerialGC",
    "-XX:NewRatio=1",  # pages are large and short-lived
    "-XX:InitialRAMPercentage=6",
    "-XX:TieredStopAtLevel=1",
    # Many starts of jobs fill the 48m that is usual for one tier; with 240m, w1 took a tenth more CPU time.
    "-XX:ReservedCodeCacheSize=128m",
    "-Duser.timezone=UTC",
)


def retrying(master: str) -> str:
    """Return a local master that retries a failed task, as a cluster does; `local[N]` alone does not.

    >>> retrying("local[*]"), retrying("local"), retrying("local[2,1]"), retrying("spark://host:7077")
    ('local[*,4]', 'local[1,4]', 'local[2,1]', 'spark://host:7077')
    """
    found = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return master if found is None else f"local[{found[1] or 1},{ATTEMPTS}]"


def start_session(
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    log_format: str = "text",
) -> SparkSession:
    """Start a session, and a JVM if there is none yet. The standard error of the JVM and the workers goes to the log,
    if one is given, and never to the terminal."""
    check_java()
    check_master(master)
    from pyspark.sql import SparkSession

    local, format_file = master.startswith("local"), LOGGING[check_format(log_format)]
    java = [*JAVA, *archive.options(), f"-Dlog4j2.configurationFile={format_file.as_uri()}"]
    if local:
        java.append(shlex.quote(f"-Djava.io.tmpdir={scratch.of_process()}"))
    usual = (
        {"spark.master": retrying(master), "spark.app.name": "millstream"}
        | QUERY_SETTINGS
        | SESSION_SETTINGS
        | (LOCAL_SETTINGS if local else {})
    )
    wanted: dict[str, Any] = usual | {JAVA_OPTIONS: " ".join(java)} | dict(settings or {})
    wanted["spark.executorEnv.POLARS_MAX_THREADS"] = "1"
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    inherited = {"POLARS_MAX_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    if local:
        inherited["SPARK_LOCAL_IP"] = LOOPBACK
    inherited = {name: value for name, value in inherited.items() if name not in os.environ}
    inherited |= {"PYSPARK_PYTHON": interpreter(master)}
    if "site-packages" not in PACKAGE.parts:  # found by this program's own path, perhaps
        inherited["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(PACKAGE)]))
    with _environment(**inherited), starting(master, log), _errors_to(log, log_format):
        launch_jvm(wanted)
        return builder.getOrCreate()


def launch_jvm(settings: Mapping[str, Any]) -> None:
    """Launch a JVM, unless this process has one. Its settings are in files that only this user can read: anyone can
    read a command line."""
    from pyspark import SparkContext
    from pyspark.sql.utils import to_str

    if SparkContext._gateway is not None:
        return
    folder, given = scratch.of_process(), {name: to_str(value) for name, value in settings.items()}
    java, properties = folder / "java-options", folder / "spark.properties"
    options = shlex.split(given.pop(JAVA_OPTIONS, ""))
    _write_private(java, "\n".join('"' + re.sub(r'([\\"])', r"\\\1", option) + '"' for option in options))
    given[JAVA_OPTIONS] = shlex.quote(f"@{java}")
    lines = (f"{_escaped(name)}={_escaped(value)}\n" for name, value in given.items() if value is not None)
    _write_private(properties, "".join(lines))
    submit = f"--properties-file {shlex.quote(str(properties))} --load-spark-defaults"
    try:
        with _environment(PYSPARK_SUBMIT_ARGS=f"{submit} {os.environ.get('PYSPARK_SUBMIT_ARGS', 'pyspark-shell')}"):
            SparkContext._ensure_initialized()
    finally:
        java.unlink()
        properties.unlink()


def _write_private(path: Path, text: str) -> None:
    path.touch(0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")


def _escaped(text: str) -> str:
    """Text as a file of Java's properties has it.

    >>> print(_escaped("a b=c:\\n"))
    a\\ b\\=c\\:\\n
    """
    return re.sub(r"([\\=:#! ])", r"\\\1", text).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def current_session() -> SparkSession | None:
    """The Spark session of this program, if it has one."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def separate_session(spark: SparkSession) -> SparkSession:
    """Return a session with the settings that this one has now. Changes of its settings leave this one as it is."""
    return type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Inside, a session is the active one of this thread, in which Spark looks up names."""
    sessions: Any = spark._get_j_spark_session_class(spark._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def calm() -> None:
    """For Millstream's own programs: handle Ctrl-C here and not in Spark; do not log a batch cut off at the end, and
    print nothing about connections that end with the JVM."""
    from pyspark.accumulators import AccumulatorTCPServer

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    pyspark = logging.getLogger("pyspark")
    AccumulatorTCPServer.handle_error = lambda *_: pyspark.info("a connection has ended", exc_info=True)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables that the JVM, and through it every worker, inherits."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _errors_to(log: Path | None, kind: str) -> Iterator[None]:
    """Let processes that are started inside write their standard error to a log; None: discard it."""
    if log is None:
        opened = os.open(os.devnull, os.O_WRONLY)
    elif kind == "json":
        opened = wrapped(open_log(log))
    else:
        opened = os.open(open_log(log), os.O_WRONLY | os.O_APPEND)
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(opened, 2)
    os.close(opened)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
