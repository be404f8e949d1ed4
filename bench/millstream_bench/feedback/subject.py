"""A worker process, driven and measured from outside: CPU time of the process and all its descendants."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from millstream_bench.spark.processes import Sampler
from millstream_bench.spark.subject import SubjectFailed, environment

WORKER = Path(__file__).parent / "worker.py"


@dataclass(frozen=True, slots=True)
class Run:
    """`cpu_s`: of all processes; `rows` and `operators` by query."""

    wall_s: float
    cpu_s: float
    rows: dict[str, int]
    operators: dict[str, dict[str, list[int]]]
    sent: int

    def out(self, kind: str, query: str = "q") -> int:
        """Tuples that operators of a kind have emitted."""
        return self.operators[query].get(kind, [0, 0, 0])[1]

    def disclaimed(self, query: str = "q") -> int:
        return sum(counts[2] for counts in self.operators[query].values())


class Subject:
    """Millstream in a process of its own. `baseline`: a checkout of another version; `spark`: on Spark, there with as
    many shards as cores, or `shards`. `worker`: the program of the process; `variables`: of its environment."""

    def __init__(
        self,
        *,
        spark: bool,
        cores: int = 2,
        shards: int | None = None,
        baseline: Path | None = None,
        worker: Path = WORKER,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._spark, self._cores, self._baseline, self._worker = spark, cores, baseline, worker
        self._shards = shards or (cores if spark else 1)
        self._variables = dict(variables or {})
        self._folder = tempfile.TemporaryDirectory(prefix="millstream-feedback-", ignore_cleanup_errors=True)

    def __enter__(self) -> Self:
        path = {} if self._baseline is None else {"PYTHONPATH": str(self._baseline.resolve() / "src")}
        self._log = (Path(self._folder.name) / "log").open("w")
        self._child = subprocess.Popen(
            [sys.executable, self._worker, str(self._spark), str(self._cores), str(self._shards)],
            cwd=self._folder.name,
            env=environment() | path | self._variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._sampler = Sampler(self._child.pid)
        self._sampler.__enter__()
        said = self._read()
        if self._baseline is not None and not said["millstream"].startswith(str(self._baseline.resolve())):
            raise SubjectFailed(f"the baseline imported {said['millstream']}")
        return self

    def run(self, task: dict[str, Any]) -> Run:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{json.dumps(task)}\n")
        self._child.stdin.flush()
        made = self._read()
        if "error" in made:
            raise SubjectFailed(made["error"])
        cpu = made["cpu_s"]
        if self._spark:
            time.sleep(0.3)  # the sample behind the end of the run
            cpu = sum(self._sampler.record.between(made["began"], made["ended"]).values())
        return Run(made["ended"] - made["began"], cpu, made["rows"], made["operators"], made["sent"])

    def _read(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            end = (Path(self._folder.name) / "log").read_text(errors="replace")[-2000:]
            raise SubjectFailed(f"the worker has ended\n{end}")
        loaded: dict[str, Any] = json.loads(line)
        return loaded

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        try:
            self._child.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._sampler.__exit__(kind, error, at)
        self._child.stdout.close()
        self._log.close()
        self._folder.cleanup()


def folder_of(name: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"millstream-{name}-", ignore_cleanup_errors=True)


BASELINE = "MILLSTREAM_BASELINE"
"""The environment variable that names the checkout of the version before feedback."""


def baseline() -> Path | None:
    return Path(os.environ[BASELINE]) if os.environ.get(BASELINE) else None
