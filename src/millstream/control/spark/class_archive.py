"""An archive of the classes of Spark's JVM, which shortens its start.

Before its first batch a JVM loads and verifies some fifteen thousand classes. `millstream prepare` runs a small query
once and lets the JVM archive the classes it has loaded (class data sharing); every later session maps that file. The
JVM ignores an archive of another Java or another Spark; without an archive each start takes some seconds longer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from millstream import scratch
from millstream.atomic_file import drafted
from millstream.errors import OptionError

SECONDS = 300
"""Time limit of the preparation."""
QUIET = ("-Xlog:disable",)
WRITE = "MILLSTREAM_WRITE_ARCHIVE"
"""The environment variable with the file that the JVM writes its archive to."""
SCRIPT = """
CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
  WITH (connector = 'nexmark', stream = 'bid', rate = 10000, events = 60000);
CREATE QUERY counts AS SELECT window_end, auction, COUNT(*) AS n FROM bids [RANGE 1 SECOND] GROUP BY auction
  INTO none;
"""


def archive() -> Path:
    """Path of this environment's archive."""
    return Path(sys.prefix) / "share" / "millstream" / "spark.jsa"


def options() -> tuple[str, ...]:
    """The JVM options to use the archive, or to write one."""
    if WRITE in os.environ:
        return f"-XX:ArchiveClassesAtExit={os.environ[WRITE]}", *QUIET
    found = archive()
    return (f"-XX:SharedArchiveFile={found}", "-Xshare:auto", *QUIET) if found.exists() else ()


def prepare() -> Path:
    """Write the archive, replacing an older one."""
    final = archive()
    final.parent.mkdir(parents=True, exist_ok=True)
    with scratch.temporary() as folder, tempfile.TemporaryFile() as output:
        draft = folder / "spark.jsa"
        command = [sys.executable, "-m", "millstream.control.spark.class_archive", str(folder)]
        environment = os.environ | {WRITE: str(draft)}
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=environment, stdout=output, stderr=output, timeout=SECONDS, check=False)
        if not draft.exists():
            output.seek(0)
            tail = output.read().decode(errors="replace")[-2000:]
            raise OptionError("M6056", "the JVM has written no archive of its classes", detail=tail)
        with drafted(final) as beside:  # a JVM that has mapped the old archive keeps it
            shutil.copyfile(draft, beside)
    return final


def _load(folder: Path) -> None:
    """Run a query in a JVM, so that it loads its classes, and wait until the JVM has ended."""
    from pyspark import SparkContext

    from millstream.control.connecting import connect

    with connect(checkpoint=folder / "checkpoint") as connection:
        connection.sql(SCRIPT)
        connection.await_end(SECONDS / 2, lambda: None)
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    _load(Path(sys.argv[1]))
