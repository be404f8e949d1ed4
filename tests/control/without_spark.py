"""A Spark job without Spark: its source and its stages are driven in this process, one store per shard."""

import shutil
import tempfile
from collections import defaultdict
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from millstream.config import Options
from millstream.control.base import Mill
from millstream.control.job import Job
from millstream.control.jobs import Jobs
from millstream.control.spark_mill import SparkMill
from millstream.physical.page_source import PageReader
from millstream.physical.stage import Stage


class _Map(dict):  # type: ignore[type-arg]
    def getValue(self, key: Any) -> Any:
        return self.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self[key] = value

    def removeKey(self, key: Any) -> None:
        self.pop(key, None)


class JobRun:
    """Batches of a job. Without `cached` every batch reads the state back from the store."""

    def __init__(self, job: Job, *, cached: bool = True) -> None:
        self.job = job
        self._cached = cached
        self._reader = PageReader({"log": str(job.log.path)})
        self._offset = self._reader.initialOffset()
        self._stages: dict[tuple[int, int], Stage] = {}
        self._batch = -1
        self.given: list[dict[str, Any]] = []
        """Pages of DataFrames, for the next batch."""

    def batch(self) -> bool:
        """Run one batch; false if there is nothing to do."""
        end = self._reader.latestOffset(self._offset, None)
        if end == self._offset and not self.given:
            return False
        works = self._reader.partitions(self._offset, end)
        made = [row for work in works for page in self._reader.read(work) for row in page.to_pylist()]
        made, self.given = [*made, *self.given], []
        for number in range(self.job.stages):
            given: dict[int, list[Any]] = defaultdict(list)
            for row in made:
                given[row["shard"]].append(SimpleNamespace(**row))
            made = [row.asDict() for label, rows in given.items() for row in self._stage(number, label, rows)]
        self._batch += 1
        self._offset = end
        columns = {name: [row[name] for row in made] for name in ("shard", "query", "kind", "page")}
        self.job._deliver(SimpleNamespace(toArrow=lambda: pa.table(columns)), self._batch)  # type: ignore[arg-type]
        commits = self.job.checkpoint / "spark" / "commits"
        commits.mkdir(parents=True, exist_ok=True)
        (commits / str(self._batch)).touch()
        return True

    def all(self) -> None:
        while self.batch():
            pass

    def report(self) -> dict[str, Any]:
        """What Spark would say of the last batch, as far as somebody reads it."""
        phases = {"addBatch": 120, "queryPlanning": 30, "walCommit": 8, "triggerExecution": 170}
        sources = [{"endOffset": self._offset}]
        return {"name": self.job.name, "batchId": self._batch, "durationMs": phases, "sources": sources}

    def _stage(self, number: int, label: int, rows: list[Any]) -> list[Any]:
        at = number, label
        if at not in self._stages:
            self._stages[at] = Stage(self.job.id, number, self.job.stages, _Map(), cached=self._cached)
        return list(self._stages[at].handleInputRows((label,), iter(rows), None))


class InProcessJobs(Jobs):
    """Jobs that run in this process whenever somebody waits for them."""

    def __init__(self, checkpoint: Path, *, shards: int, cached: bool = True) -> None:
        self._runs: dict[str, JobRun] = {}
        super().__init__(None, checkpoint, shards=shards, cached=cached)  # type: ignore[arg-type]

    def _open(self, name: str, stages: int = 1) -> Job:
        job = super()._open(name, stages)
        if job.id not in self._runs:
            self._runs[job.id] = JobRun(job, cached=self.cached)
            job.start = lambda: None  # type: ignore[method-assign]
            job.wait = lambda timeout=0.0: self._runs[job.id].all()  # type: ignore[method-assign,misc]
        return job

    def run(self, job: Job) -> JobRun:
        return self._runs[job.id]


class InProcessHost:
    """Mills for transcripts, in jobs without Spark."""

    def __init__(self, shards: int, *, cached: bool = True) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-test-"))
        self.jobs = InProcessJobs(self._folder, shards=shards, cached=cached)
        self._names = count(1)

    def open(self, options: Options) -> Mill:
        return SparkMill(self.jobs, f"t{next(self._names)}", options)

    def restart(self, mill: Mill) -> Mill:
        assert isinstance(mill, SparkMill)
        mill.sync()
        return SparkMill.recover(self.jobs, mill.name, mill.options)

    def close(self, mill: Mill) -> None:
        assert isinstance(mill, SparkMill)
        mill.close()

    def stop(self) -> None:
        self.jobs.close()
        shutil.rmtree(self._folder, ignore_errors=True)
