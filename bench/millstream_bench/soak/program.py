"""The program that the soak kills: a join on Spark, started and restarted with one checkpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from millstream.physical.shard.durable import SegmentFiles
from millstream_bench.soak.processes import descendants

STATEMENTS = """\
CREATE STREAM auctions (id BIGINT, category BIGINT, seller BIGINT, ts TIMESTAMP) ORDER BY ts PRIMARY KEY (id)
  WITH (connector = 'nexmark', stream = 'auction', events = '{events}', max_rows_per_trigger = '{step}');
CREATE STREAM bids (auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts PUNCTUATED ON (auction #)
  WITH (connector = 'nexmark', stream = 'bid', events = '{events}', max_rows_per_trigger = '{step}');
CREATE QUERY joined AS
  SELECT a.id, a.category, a.seller, b.bidder, b.price, b.ts FROM bids b JOIN auctions a ON b.auction = a.id
  INTO parquet WITH (path = '{output}');
"""
PROGRAM = "from millstream.cli import main; main()"
RESTARTS = 3
SOURCE = "python_streaming_source_runner"


@dataclass(frozen=True, slots=True)
class Workload:
    """Number of events, which make about `batches` batches."""

    batches: int = 60
    step: int = 2000

    def statements(self, output: Path) -> str:
        return STATEMENTS.format(events=self.batches * self.step, step=self.step, output=output)


class Run:
    def __init__(self, folder: Path, load: Workload, master: str) -> None:
        self.folder = folder
        self._checkpoint, self._output = folder / "checkpoint", folder / "output"
        self._master = master
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch = folder / "scratch"
        self._scratch.mkdir(parents=True)
        self._file = folder / "join.sql"
        self._file.write_text(load.statements(self._output))

    def start(self) -> None:
        """Start the program, in a process group of its own."""
        arguments = ["run", str(self._file), "--checkpoint", str(self._checkpoint), "--master", self._master]
        environment = os.environ | {"SPARK_LOCAL_DIRS": str(self._scratch), "POLARS_MAX_THREADS": "1"}
        with (self.folder / "said.txt").open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *arguments, "--log", str(self.folder / "spark.log")],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environment,
                start_new_session=True,
            )

    def exited(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self, *, alone: bool = False) -> None:
        """Kill the program, with or without its JVM; its other processes end when they notice."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                (os.kill if alone else os.killpg)(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def workers(self) -> list[tuple[int, str]]:
        """The Python workers of tasks, and the process that runs the stream reader."""
        if self._process is None:
            return []
        found = descendants(self._process.pid)
        daemons = {process.pid for process in found if "pyspark.daemon" in process.command}
        made = [(process.pid, "Python worker") for process in found if process.parent in daemons]
        return made + [(process.pid, "source process") for process in found if SOURCE in process.command]

    @staticmethod
    def signal(pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def begun(self) -> int:
        """The last batch begun, -1 if none."""
        return self._last("offsets")

    def done(self) -> int:
        """The last batch committed."""
        return self._last("commits")

    def _last(self, log: str) -> int:
        folder = self._checkpoint / "job-1" / "spark" / log
        with suppress(OSError):
            return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1)
        return -1

    def where(self) -> str:
        """The batches begun and committed."""
        begun, done = self.begun(), self.done()
        if begun < 0:
            return "before the first batch"
        return f"in batch {begun}" if begun > done else f"after batch {done}"

    def wait_for_commit(self, seconds: float) -> bool:
        """Wait for the next commit or for a successful end; a program that stopped is restarted."""
        done, deadline = self.done(), time.monotonic() + seconds
        while self.done() == done:
            if self._ended_well():
                return True
            if self.exited():
                self.start()
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def finish(self, seconds: float) -> bool:
        """Wait for the end, with a few restarts; return whether the program succeeded."""
        deadline = time.monotonic() + seconds
        for _ in range(RESTARTS):
            assert self._process is not None
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(deadline - time.monotonic())
            if not self.exited() or self._ended_well():
                break
            self.start()
        return self._ended_well()

    def _ended_well(self) -> bool:
        return self._process is not None and self._process.poll() == 0

    def rows(self) -> pl.DataFrame:
        """The rows written, in a fixed order."""
        return read_rows(self._output)

    def said(self) -> str:
        """The last line printed."""
        lines = (self.folder / "said.txt").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing was said"

    def close(self) -> None:
        self.kill()
        with suppress(OSError, ValueError, KeyError):
            SegmentFiles(json.loads((self._checkpoint / "job-1" / "job.json").read_text())["id"]).clear()


def read_rows(output: Path) -> pl.DataFrame:
    """The rows in a folder of results, in a fixed order."""
    rows = pl.read_parquet(output / "*.parquet")
    return rows.sort(rows.columns)
