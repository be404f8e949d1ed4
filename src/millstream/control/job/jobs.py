"""The jobs of one checkpoint folder, and the driver's own log beside them."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from millstream.algebra.clock import SystemClock
from millstream.control.job.base import Job
from millstream.control.job.explaining import writing
from millstream.control.job.identity import FILE, read_identity
from millstream.control.job.local import LocalJob
from millstream.control.job.ownership import Ownership
from millstream.control.job.parts import DRIVER, check_checkpoint
from millstream.errors import OptionError, advice
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.memory_log import MemoryLog
from millstream.physical.wire.records import Record, Remember

LATEST = ("sources", "file", "stands", "diverted", "jobs")
"""Kinds of notes where a later note replaces an earlier one."""


class Jobs(ABC):
    """`folder` holds the log and a folder for each job, and belongs to these jobs until they are closed; None: all of
    it is in memory."""

    def __init__(self, folder: Path | None, *, shards: int) -> None:
        self.folder = folder
        self._wanted = shards
        self._jobs: dict[str, Job] = {}
        self._opening, self._noting = threading.Lock(), threading.Lock()
        self._owner: Ownership | None = None
        self._closed = False
        if folder is None:
            self.log: ControlLog | MemoryLog = MemoryLog()
            return
        with writing(folder):
            self._owner = Ownership(folder)
            try:
                check_checkpoint(ControlLog(folder / DRIVER))
                self.log = ControlLog(folder / DRIVER, writable=True)
                for found in sorted(folder.glob("job-*")):
                    self._open(found.name)
            except BaseException:
                self._owner.release()
                raise

    at_once = False
    """True if a batch is so cheap that each statement takes effect before the next one."""

    @abstractmethod
    def _new_job(self, folder: Path | None, *, shards: int, stages: int) -> Job:
        """Make a job that keeps its files in a folder."""

    def remember(self, note: Remember) -> None:
        """Write what the recovery of a mill needs to the driver's log."""
        with self._noting:
            jobs = {} if self.folder is None else {name: (j.log.end(), j.batch) for name, j in [*self._jobs.items()]}
            self.log.append(replace(note, jobs=jobs))
            if self.log.grown:
                last = {(r.mill, r.kind): p for p, r in self.log.numbered() if isinstance(r, Remember)}

                def needed(position: int, record: Record) -> bool:
                    if isinstance(record, Remember) and record.kind in LATEST:
                        return position == last[record.mill, record.kind]
                    return True

                self.log.compact(needed)

    @property
    def shards(self) -> int:
        return next(iter(self._jobs.values())).shards if self._jobs else self._wanted

    def job(self, frames: frozenset[str] = frozenset(), stages: int = 1) -> Job:
        """Return the job with this number of stages for queries that read exactly these DataFrames, beside streams that
        the job reads itself."""
        return self._open(_job_name(frames, stages), stages)

    def found(self, frames: frozenset[str] = frozenset(), stages: int = 1) -> Job | None:
        """Return that job if there is one."""
        return self._jobs.get(_job_name(frames, stages))

    def _open(self, name: str, stages: int = 1) -> Job:
        with self._opening:
            if name not in self._jobs:
                folder = None if self.folder is None else self.folder / name
                with writing(self.folder):
                    job = self._new_job(folder, shards=self.shards, stages=stages)
                if job.noted is not None:
                    job.noted.driver = self.log.end
                self._jobs[name] = job
            return self._jobs[name]

    def reshard(self, shards: int) -> None:
        """Set the number of shards of the first job; all later jobs have as many as that one."""
        self.check_shards(shards)
        self._wanted = shards

    def check_shards(self, shards: int) -> None:
        """Raise OptionError if the jobs have another number of shards."""
        if self._jobs:
            _check_shards(self.folder, self.shards, shards)

    def work_off(self) -> None:
        """Wait until the jobs have processed their logs to the end."""
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
        try:
            for job in self.all():
                job.close()
            if self._jobs and not self._closed:
                self.remember(Remember("", "jobs", None))
            self._closed = True
            self.log.close()
        finally:
            if self._owner is not None:
                self._owner.release()


def check_jobs(folder: Path, host: str, shards: int | None) -> None:
    """Raise an error if this host cannot run the jobs in a folder, with this number of shards if it is given, or if a
    part is missing."""
    check_checkpoint(ControlLog(folder / DRIVER))
    for found in sorted(folder.glob(f"job-*/{FILE}")):
        kept = read_identity(found.parent, host)
        _check_shards(folder, kept.shards, kept.shards if shards is None else shards)


def _check_shards(folder: Path | None, have: int, wanted: int) -> None:
    if have != wanted:
        where = "the jobs have" if folder is None else f"checkpoint '{folder}' has"
        given = advice(f"shards = {have}", f"--shards {have}, or leave it out")
        count = "1 shard" if have == 1 else f"{have} shards"
        message, hint = f"{where} {count}, which cannot become {wanted}", f"{given}, or another checkpoint folder"
        raise OptionError("M6072", message, hint=hint)


def _job_name(frames: frozenset[str], stages: int) -> str:
    names = " ".join(name.replace("\\", "\\\\").replace(" ", "\\ ") for name in sorted(frames))
    digest = hashlib.sha1(names.encode()).hexdigest()[:10] if frames else "1"
    return f"job-{digest}" if stages == 1 else f"job-{digest}-{stages}"


class LocalJobs(Jobs):
    """Jobs that this process runs; `clock` returns the time of their batches."""

    at_once = True

    def __init__(
        self,
        folder: Path | None = None,
        *,
        shards: int = 1,
        clock: Callable[[], int] | None = None,
        cached: bool = True,
    ) -> None:
        self.clock, self.cached = clock or SystemClock().now, cached
        self.before_batch: list[Callable[[], None]] = []
        """Called before each batch of a job."""
        super().__init__(folder, shards=shards)

    def _new_job(self, folder: Path | None, *, shards: int, stages: int) -> LocalJob:
        job = LocalJob(folder, shards=shards, stages=stages, clock=lambda: self.clock(), cached=self.cached)
        job.before_batch = self.before_batch
        return job

    def reshard(self, shards: int) -> None:
        """Discard jobs in memory first; they run nothing."""
        if self.folder is None:
            self._jobs.clear()
        super().reshard(shards)

    def step(self) -> bool:
        """Run a batch of every job; return False if no job had one to run."""
        return max([job.step() for job in self.all() if isinstance(job, LocalJob)], default=False)
