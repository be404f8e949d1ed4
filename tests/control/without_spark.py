"""A Spark job without Spark: its source and its stage are driven in this process, one stage and one store per shard."""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from millstream.control.job import Job
from millstream.physical.page_source import PageReader
from millstream.physical.stage import Stage


class _Value:
    def __init__(self) -> None:
        self.held: Any = None

    def get(self) -> Any:
        return self.held

    def update(self, value: Any) -> None:
        self.held = value

    def clear(self) -> None:
        self.held = None


class _Map(dict):  # type: ignore[type-arg]
    def getValue(self, key: Any) -> Any:
        return self[key]

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
        self._stages: dict[int, Stage] = {}
        self._batch = -1

    def batch(self) -> bool:
        """Run one batch; false if there is nothing to do."""
        end = self._reader.latestOffset(self._offset, None)
        if end == self._offset:
            return False
        given: dict[int, list[Any]] = defaultdict(list)
        for work in self._reader.partitions(self._offset, end):
            for page in self._reader.read(work):
                for row in page.to_pylist():
                    given[row["shard"]].append(SimpleNamespace(**row))
        made = [row for label, rows in given.items() for row in self._stage(label, rows)]
        self._batch += 1
        self._offset = end
        columns = {name: [row[name] for row in made] for name in ("shard", "query", "kind", "page")}
        self.job._deliver(SimpleNamespace(toArrow=lambda: pa.table(columns)), self._batch)  # type: ignore[arg-type]
        return True

    def all(self) -> None:
        while self.batch():
            pass

    def report(self) -> dict[str, Any]:
        """What Spark would say of the last batch, as far as somebody reads it."""
        phases = {"addBatch": 120, "queryPlanning": 30, "walCommit": 8, "triggerExecution": 170}
        sources = [{"endOffset": self._offset}]
        return {"name": self.job.name, "batchId": self._batch, "durationMs": phases, "sources": sources}

    def _stage(self, label: int, rows: list[Any]) -> list[Any]:
        if label not in self._stages:
            self._stages[label] = Stage(self.job.id, _Value(), _Map(), cached=self._cached)
        return list(self._stages[label].handleInputRows((label,), iter(rows), None))
