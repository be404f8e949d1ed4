"""The interpreter that Spark starts its Python processes with.

Spark puts zip archives of PySpark and Py4J first on their path. Every process that imports a module from an archive
unpacks and compiles it, and every task reads the archives' directories anew: about a second for each process, a tenth
for each task. Where the same packages are installed unpacked, a launcher removes the archives from the path.
"""

from __future__ import annotations

import os
import shlex
import sys
from functools import cache
from pathlib import Path

from millstream import scratch

SCRIPT = """#!/bin/sh
kept=
IFS=:
for part in $PYTHONPATH; do
  case "$part" in
    */pyspark.zip | */py4j-*-src.zip | *.jar) ;;
    *) kept="$kept${{kept:+:}}$part" ;;
  esac
done
PYTHONPATH="$kept" exec {python} "$@"
"""


def interpreter(master: str) -> str:
    """The command that starts Python processes: on this machine the launcher of this interpreter, otherwise the
    interpreter itself. A separate Spark installation has its own PySpark, and a cluster may not have the launcher."""
    if not master.startswith("local") or "SPARK_HOME" in os.environ or not Path("/bin/sh").exists():
        return sys.executable
    return _launcher()


@cache
def _launcher() -> str:
    script = scratch.of_process() / "python"
    script.write_text(SCRIPT.format(python=shlex.quote(sys.executable)))
    script.chmod(0o700)
    return str(script)
