"""Transcripts on Spark: one running job hosts all of them, each with a mill of its own.

Transcripts run side by side, so that a Spark batch takes a step of many. A restart stops the job for all of them, so it
waits until every one has asked for it or is done; those that have asked recover their mills from the control log.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.config import Options
from millstream.control.mill.base import Mill
from millstream.control.mill.recovery import recovered
from millstream.control.spark.jobs import SparkJobs
from millstream.testing.runner import Outcome, Variant, run_text, transcripts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIDE_BY_SIDE = 64


class SparkHost:
    """Mills in one Spark job."""

    def __init__(self, spark: SparkSession, shards: int, *, cached: bool = True) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-test-"))
        self.jobs = SparkJobs(spark, self._folder, shards=shards, cached=cached)
        self._names = count(1)
        self._changed = threading.Condition()
        self._open = self._asking = self._restarts = 0

    def open(self, options: Options) -> Mill:
        with self._changed:
            self._open += 1
            return Mill(self.jobs, f"t{next(self._names)}", options)

    def restart(self, mill: Mill) -> Mill:
        mill.sync()
        with self._changed:
            self._asking, before = self._asking + 1, self._restarts
            self._restart_if_all_ask()
            while self._restarts == before:
                self._changed.wait()
        return recovered(self.jobs, mill.name, mill.options)

    def close(self, mill: Mill) -> None:
        with self._changed:
            self._open -= 1
            mill.close()
            self._restart_if_all_ask()

    def _restart_if_all_ask(self) -> None:
        if self._asking and self._asking == self._open:
            try:
                self.jobs.restart()
            finally:
                self._asking, self._restarts = 0, self._restarts + 1
                self._changed.notify_all()

    def stop(self) -> None:
        self.jobs.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def run_paths_on_spark(
    spark: SparkSession,
    paths: Iterable[Path],
    variant: Variant,
    report: Callable[[Outcome], None] = lambda _: None,
    *,
    cached: bool = True,
) -> list[Outcome]:
    """Run every `*.transcript` file among and below the paths, side by side."""
    host = SparkHost(spark, variant.shards, cached=cached)
    files = transcripts(paths)

    def run(path: Path) -> Outcome:
        return run_text(path.read_text(encoding="utf-8-sig"), variant, str(path), host)

    outcomes: list[Outcome] = []
    try:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for outcome in pool.map(run, files):
                report(outcome)
                outcomes.append(outcome)
    finally:
        host.stop()
    return outcomes
