"""The jobs of one checkpoint folder, and the driver's own log beside them."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.control.job.base import COMPACT_AFTER, Job
from millstream.control.job.local import LocalJob, wall_clock
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.memory_log import MemoryLog
from millstream.physical.wire.records import Remember

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATEST = ("sources", "file")
"""Kinds of notes of which only the last one counts."""


class Jobs(ABC):
    """`folder` is where everything is kept; None: in memory."""

    def __init__(self, folder: Path | None, *, shards: int) -> None:
        self.folder = folder
        self._wanted = shards
        self._jobs: dict[str, Job] = {}
        self._opening, self._noting = threading.Lock(), threading.Lock()
        if folder is None:
            self.log: ControlLog | MemoryLog = MemoryLog()
            return
        folder.mkdir(parents=True, exist_ok=True)
        self.log = ControlLog(folder / "driver.log", writable=True)
        for found in sorted(folder.glob("job-*")):
            self._open(found.name)

    at_once = False
    """Whether a batch costs so little that results need not be waited for."""

    @abstractmethod
    def _made(self, folder: Path | None, *, shards: int, stages: int) -> Job:
        """A job that is kept in a folder."""

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
                folder = None if self.folder is None else self.folder / name
                self._jobs[name] = self._made(folder, shards=self.shards, stages=stages)
            return self._jobs[name]

    def reshard(self, shards: int) -> None:
        """Jobs opened from now on have so many shards, if there are none yet."""
        self._wanted = shards

    def work_off(self) -> None:
        """Wait until everything in the logs has been heard."""
        for job in self.all():
            job.wait(job.log.end())

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


class SparkJobs(Jobs):
    def __init__(self, spark: SparkSession, folder: Path, *, shards: int, cached: bool = True) -> None:
        self.spark, self.cached = spark, cached
        super().__init__(folder, shards=shards)

    def _made(self, folder: Path | None, *, shards: int, stages: int) -> Job:
        from millstream.control.spark.job import SparkJob

        assert folder is not None
        return SparkJob(self.spark, folder, shards=shards, stages=stages, cached=self.cached)


class LocalJobs(Jobs):
    """Jobs that this process runs; `clock` tells the time of their batches."""

    at_once = True

    def __init__(
        self,
        folder: Path | None = None,
        *,
        shards: int = 1,
        clock: Callable[[], int] = wall_clock,
        cached: bool = True,
    ) -> None:
        self.clock, self.cached = clock, cached
        super().__init__(folder, shards=shards)

    def _made(self, folder: Path | None, *, shards: int, stages: int) -> LocalJob:
        return LocalJob(folder, shards=shards, stages=stages, clock=lambda: self.clock(), cached=self.cached)

    def reshard(self, shards: int) -> None:
        """Jobs in memory that run nothing make room for others."""
        if self.folder is None:
            self._jobs.clear()
        super().reshard(shards)

    def step(self) -> bool:
        """Run a batch of every job; false if there is nothing to do."""
        return max([job.step() for job in self.all() if isinstance(job, LocalJob)], default=False)
