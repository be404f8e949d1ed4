"""Run a contestant in a process of its own and measure that process from outside.

The child reads its task from one JSON object and writes another one at the end: `answers`, and `batches` with `rows`,
`started`, `ended` and `state_rows`. CPU time is read by the parent, so that the measurement does not measure itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream_bench.spark.measurement import Batch, Measurement, steady
from millstream_bench.spark.processes import CpuRecord, Sampler


class SubjectFailed(RuntimeError):
    """The child failed; the message is the end of its output."""


def measure(module: str, task: dict[str, Any], *, warm_up: int, note: str = "") -> Measurement:
    """Run `python -m module TASK RESULT` and measure the batches after the warm-up."""
    result, record = _supervised(module, task)
    batches = [Batch(**batch) for batch in result["batches"]]
    batches = [replace(batch, cpu_s=_total(record, batch.started, batch.ended)) for batch in batches]
    measured = steady(batches, warm_up)
    if not measured:
        raise SubjectFailed(f"{module}: no batch is left after a warm-up of {warm_up} of {len(batches)}")
    start, end = measured[0].started, measured[-1].ended
    rows = sum(batch.rows for batch in measured)
    whole = sum(record.totals[-1].values())
    return Measurement(rows, end - start, record.between(start, end), result["answers"], batches, note, whole)


def environment() -> dict[str, str]:
    """For processes that run Spark: workers use this interpreter, and one Polars thread each."""
    return os.environ | {"POLARS_MAX_THREADS": "1", "PYSPARK_PYTHON": sys.executable}


def _supervised(module: str, task: dict[str, Any]) -> tuple[dict[str, Any], CpuRecord]:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "task.json").write_text(json.dumps(task))
        command = [sys.executable, "-m", module, "task.json", "result.json"]
        with (folder / "log").open("w") as log:
            # The child works in the folder, so that files left by Spark are removed with it.
            child = subprocess.Popen(command, cwd=folder, env=environment(), stdout=log, stderr=log)
            try:
                with Sampler(child.pid) as sampler:
                    status = child.wait()
            except BaseException:
                child.terminate()
                child.wait()
                raise
        if status != 0:
            end = (folder / "log").read_text(errors="replace")[-3000:]
            raise SubjectFailed(f"{module} ended with status {status}\n{end}")
        return json.loads((folder / "result.json").read_text()), sampler.record


def _total(record: CpuRecord, start: float, end: float) -> float:
    return sum(record.between(start, end).values())
