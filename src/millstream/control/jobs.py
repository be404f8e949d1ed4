"""The Spark jobs of one checkpoint folder, and the driver's own log beside them."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.control.job import COMPACT_AFTER, Job
from millstream.physical.control_log import ControlLog
from millstream.physical.records import Remember

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATEST = ("sources", "file")
"""Kinds of notes of which only the last one counts."""


class Jobs:
    def __init__(self, spark: SparkSession, checkpoint: Path, *, shards: int, cached: bool = True) -> None:
        self.spark, self.checkpoint, self.cached = spark, checkpoint, cached
        self._wanted = shards
        self._jobs: dict[str, Job] = {}
        self._opening, self._noting = threading.Lock(), threading.Lock()
        checkpoint.mkdir(parents=True, exist_ok=True)
        self.log = ControlLog(checkpoint / "driver.log", writable=True)
        for folder in sorted(checkpoint.glob("job-*")):
            self._open(folder.name)

    def remember(self, note: Remember) -> None:
        """Write down what a mill needs to be recovered."""
        with self._noting:
            self.log.append(note)
            if self.log.size > self.log.compacted + COMPACT_AFTER:
                last = {(r.mill, r.kind): p for p, r in self.log.numbered() if isinstance(r, Remember)}
                self.log.compact(
                    lambda position, r: (
                        not isinstance(r, Remember) or r.kind not in LATEST or position == last[r.mill, r.kind]
                    )
                )

    @property
    def shards(self) -> int:
        return next(iter(self._jobs.values())).shards if self._jobs else self._wanted

    def job(self, frames: frozenset[str] = frozenset(), stages: int = 1) -> Job:
        """The job of so many stages for queries that read just these DataFrames, and streams that the job reads
        itself."""
        digest = hashlib.sha1(" ".join(sorted(frames)).encode()).hexdigest()[:10] if frames else "1"
        return self._open(f"job-{digest}" if stages == 1 else f"job-{digest}-{stages}", stages)

    def _open(self, name: str, stages: int = 1) -> Job:
        with self._opening:
            if name not in self._jobs:
                folder, shards = self.checkpoint / name, self.shards
                self._jobs[name] = Job(self.spark, folder, shards=shards, stages=stages, cached=self.cached)
            return self._jobs[name]

    def all(self) -> list[Job]:
        return list(self._jobs.values())

    def restart(self) -> None:
        for job in self.all():
            job.restart()

    def stop(self) -> None:
        for job in self.all():
            job.stop()

    def close(self) -> None:
        for job in self.all():
            job.close()
        self.log.close()
