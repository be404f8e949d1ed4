"""A Spark session set up for pages: cheap commits, RocksDB, a quiet JVM, workers that find this interpreter."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.control.spark import class_archive as archive
from millstream.control.spark.launcher import interpreter
from millstream.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STREAMING = "spark.sql.streaming"
_STATE = "org.apache.spark.sql.execution.streaming.state"
_CHECKPOINT = "org.apache.spark.sql.execution.streaming.checkpointing"
LOGGING = Path(__file__).parent / "log4j2.properties"

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
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
}
SESSION_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.driver.memory": "2g",
    "spark.python.worker.reuse": "true",
}
LOCAL_SETTINGS = {
    # Between processes of one machine, compression gains nothing.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
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
    master: str = "local[*]", settings: Mapping[str, str] | None = None, log: Path | None = None
) -> SparkSession:
    """Start a session, and a JVM if there is none yet. The standard error of the JVM and the workers goes to the log,
    if one is given, and never to the terminal."""
    _check_java()
    from pyspark.sql import SparkSession

    java = " ".join((*JAVA, *archive.options(), f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"))
    usual = QUERY_SETTINGS | SESSION_SETTINGS | (LOCAL_SETTINGS if master.startswith("local") else {})
    wanted = usual | {"spark.driver.extraJavaOptions": java} | dict(settings or {})
    wanted["spark.executorEnv.POLARS_MAX_THREADS"] = "1"
    builder = SparkSession.builder.master(retrying(master)).appName("millstream")
    for name, value in wanted.items():
        builder = builder.config(name, value)
    environment = _environment(PYSPARK_PYTHON=interpreter(master), POLARS_MAX_THREADS="1", PYTHONWARNINGS="ignore")
    with environment, _errors_to(log or Path(os.devnull)):
        return builder.getOrCreate()


def calm() -> None:
    """For Millstream's own programs: handle Ctrl-C here and not in Spark, and do not log a batch cut off at the end."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise OptionError(
            "M6055", "Spark needs Java 17 or newer, and there is none", hint="make java explains how to install it"
        )


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables that the JVM, and through it every worker, inherits."""
    before = {name: os.environ.get(name) for name in values}
    given = {name: value for name, value in values.items() if before[name] is None}
    os.environ.update(given | {"PYSPARK_PYTHON": values["PYSPARK_PYTHON"]})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Let processes that are started inside write their standard error to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
