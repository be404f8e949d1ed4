"""The classes of Spark's JVM, archived so that it starts in less time.

Before its first batch a JVM loads and verifies some fifteen thousand classes. `millstream prepare` runs a small query
once and has the JVM write down what it has loaded (class data sharing); every session started later maps that file. An
archive that does not fit (another Java, another Spark) is ignored by the JVM, and one that is missing costs some
seconds a start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from millstream.errors import OptionError
from millstream.whole_file import drafted

SECONDS = 300
"""How long the preparation may take at most."""
QUIET = ("-Xlog:disable",)
WRITE = "MILLSTREAM_WRITE_ARCHIVE"
"""Names the file that a JVM shall write its archive to."""
SCRIPT = """
CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
  WITH (connector = 'nexmark', stream = 'bid', rate = 10000, events = 60000);
CREATE QUERY counts AS SELECT window_end, auction, COUNT(*) AS n FROM bids [RANGE 1 SECOND] GROUP BY auction
  INTO none;
"""


def archive() -> Path:
    """Where the archive of this environment is."""
    return Path(sys.prefix) / "share" / "millstream" / "spark.jsa"


def options() -> tuple[str, ...]:
    """What tells the JVM to use the archive, or to write one."""
    if WRITE in os.environ:
        return f"-XX:ArchiveClassesAtExit={os.environ[WRITE]}", *QUIET
    found = archive()
    return (f"-XX:SharedArchiveFile={found}", "-Xshare:auto", *QUIET) if found.exists() else ()


def prepare() -> Path:
    """Write the archive, in place of the one that is there."""
    final = archive()
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="millstream-") as folder, tempfile.TemporaryFile() as said:
        draft = Path(folder) / "spark.jsa"
        command = [sys.executable, "-m", "millstream.control.spark.class_archive", folder]
        environment = os.environ | {WRITE: str(draft)}
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=environment, stdout=said, stderr=said, timeout=SECONDS, check=False)
        if not draft.exists():
            said.seek(0)
            tail = said.read().decode(errors="replace")[-2000:]
            raise OptionError("M6056", "the JVM has written no archive of its classes", detail=tail)
        with drafted(final) as beside:  # a JVM that has mapped the old archive keeps it
            shutil.copyfile(draft, beside)
    return final


def _load(folder: Path) -> None:
    """Have a JVM load what a query needs, and wait until it has ended."""
    from pyspark import SparkContext

    from millstream.control.connection import connect

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
