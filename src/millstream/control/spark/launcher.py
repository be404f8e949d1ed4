"""The interpreter that Spark starts its Python processes with.

Spark puts zip archives of PySpark and Py4J first on their path. Every process that imports a module from an archive
unpacks and compiles it, and every task reads the archives' directories anew: about a second for each process, a tenth
for each task. Where the same packages are installed unpacked, a launcher removes the archives from the path. It also
drops the five lines that Spark's Python process beside the driver prints at each start of a job.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from millstream import scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = """#!/bin/sh
case "$*" in *transform_with_state_driver_worker*) exec > /dev/null ;; esac
{path}exec {python} "$@"
"""
UNPACKED = """kept=
IFS=:
for part in $PYTHONPATH; do
  case "$part" in
    */pyspark.zip | */py4j-*-src.zip | *.jar) ;;
    *) kept="$kept${kept:+:}$part" ;;
  esac
done
export PYTHONPATH="$kept"
"""


def interpreter(master: str, python: str = sys.executable) -> str:
    """The command that starts Python processes: on this machine a launcher of the interpreter, otherwise the
    interpreter itself: a cluster may not have the launcher. A separate Spark installation has its own PySpark."""
    if not master.startswith("local") or not Path("/bin/sh").exists():
        return python
    found = Path(shutil.which(python) or "").parent
    return _launcher(python, found == Path(sys.executable).parent and "SPARK_HOME" not in os.environ)


@cache
def _launcher(python: str, unpacked: bool) -> str:
    number = sum(1 for _ in scratch.of_process().glob("python*"))
    script = scratch.of_process() / f"python{number or ''}"
    script.write_text(SCRIPT.format(path=UNPACKED if unpacked else "", python=shlex.quote(python)))
    script.chmod(0o700)
    return str(script)


@contextmanager
def launched(spark: SparkSession) -> Iterator[None]:
    """Inside, what is registered with a session gets its Python processes from the launcher; those of the program's own
    functions stay as they are."""
    context = spark.sparkContext
    python = context.pythonExec
    if not Path(python).is_relative_to(scratch.of_process()):
        context.pythonExec = interpreter(context.master, python)
    try:
        yield
    finally:
        context.pythonExec = python
