"""Transcripts on Spark: one running job hosts all of them, each with a mill of its own.

Transcripts run side by side, so one Spark batch serves a step of many. A restart stops the job for all of them, so it
waits until every transcript has requested it or has ended. Each that requested it then recovers its mill from the logs,
and the job starts again when all have: it hands no result to a mill that is being replaced.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from millstream import scratch
from millstream.config import Options
from millstream.control.mill.base import Mill
from millstream.control.mill.recovery import recovered
from millstream.control.spark.jobs import SparkJobs
from millstream.physical.wire.control_log import ControlLog
from millstream.testing.runner import Outcome, Variant, run_path, transcripts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIDE_BY_SIDE = 64


class SparkHost:
    """A host of mills in Spark jobs."""

    def __init__(self, spark: SparkSession, shards: int, *, cached: bool = True) -> None:
        self._closing = ExitStack()
        folder = self._closing.enter_context(scratch.temporary())
        self.jobs = SparkJobs(spark, folder, shards=shards, cached=cached)
        self._names = count(1)
        self._changed = threading.Condition()
        self._open = self._waiting = self._meetings = 0

    def open(self, options: Options) -> Mill:
        with self._changed:
            self._changed.wait_for(lambda: not self._stopped)
            self._open += 1
            return Mill(self.jobs, f"t{next(self._names)}", options)

    def restart(self, mill: Mill) -> Mill:
        mill.sync()
        self._meet()
        try:
            return recovered(self.jobs, mill.name, mill.options)
        finally:
            self._meet()

    def close(self, mill: Mill) -> None:
        with self._changed:
            self._open -= 1
            mill.close()
            self._go_on_if_all_wait()

    @property
    def _stopped(self) -> bool:
        """True while the jobs are stopped: every second meeting starts them again."""
        return self._meetings % 2 == 1

    def _meet(self) -> None:
        """Wait until all transcripts wait; then the jobs are stopped, or started."""
        with self._changed:
            self._waiting, before = self._waiting + 1, self._meetings
            self._go_on_if_all_wait()
            self._changed.wait_for(lambda: self._meetings > before)

    def _go_on_if_all_wait(self) -> None:
        if not self._waiting or self._waiting < self._open:
            return
        try:
            for job in self.jobs.all():
                if self._stopped:
                    job.start()
                else:
                    if isinstance(job.log, ControlLog):
                        job.log.keep_decoded()
                    job.stop()
        finally:
            self._waiting, self._meetings = 0, self._meetings + 1
            self._changed.notify_all()

    def stop(self) -> None:
        self.jobs.close()
        self._closing.close()


def run_paths_on_spark(
    spark: SparkSession,
    paths: Iterable[Path],
    variant: Variant,
    report: Callable[[Outcome], None] = lambda _: None,
    *,
    cached: bool = True,
) -> list[Outcome]:
    """Run the files among the paths and every `*.transcript` file below them, side by side."""
    files = transcripts(paths)
    host = SparkHost(spark, variant.shards, cached=cached)
    outcomes: list[Outcome] = []
    try:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for outcome in pool.map(lambda path: run_path(path, variant, host), files):
                report(outcome)
                outcomes.append(outcome)
    finally:
        host.stop()
    return outcomes
