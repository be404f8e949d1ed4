"""The interpreter that Spark starts its Python processes with.

Spark puts zip archives of PySpark and Py4J before everything else on their path. A module in an archive is unpacked and
compiled by every process that imports it, and every task reads the archives' directories anew: about a second for each
process, a tenth for each task. Where the same packages are installed unpacked, a launcher takes the archives off the
path.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

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
    """What to start Python processes with: this interpreter, on this machine by way of the launcher. Another Spark than
    the one installed with this interpreter brings its own PySpark, and a cluster may not have the launcher."""
    if not master.startswith("local") or "SPARK_HOME" in os.environ or not Path("/bin/sh").exists():
        return sys.executable
    return _launcher()


@cache
def _launcher() -> str:
    folder = Path(tempfile.mkdtemp(prefix="millstream-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "python"
    script.write_text(SCRIPT.format(python=shlex.quote(sys.executable)))
    script.chmod(0o755)
    return str(script)
