"""Transcripts on Spark: one running job hosts all of them, each with a mill of its own.

Transcripts run side by side, so that a Spark batch takes a step of many. A restart stops the job for all of them and
recovers the mill that asked for it from the control log.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.config import Options
from millstream.control.base import Mill
from millstream.control.jobs import Jobs
from millstream.control.spark_mill import SparkMill
from millstream.testing.runner import Outcome, Variant, run_text, transcripts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIDE_BY_SIDE = 64


class SparkHost:
    """Mills in one Spark job."""

    def __init__(self, spark: SparkSession, shards: int, *, cached: bool = True) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-test-"))
        self.jobs = Jobs(spark, self._folder, shards=shards, cached=cached)
        self._names = count(1)

    def open(self, options: Options) -> Mill:
        return SparkMill(self.jobs, f"t{next(self._names)}", options)

    def restart(self, mill: Mill) -> Mill:
        assert isinstance(mill, SparkMill)
        mill.sync()
        self.jobs.restart()
        return SparkMill.recover(self.jobs, mill.name, mill.options)

    def close(self, mill: Mill) -> None:
        assert isinstance(mill, SparkMill)
        mill.close()

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
