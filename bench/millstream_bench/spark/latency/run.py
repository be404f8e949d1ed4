"""Latency: from the arrival of the row that completes a window to the call of a function with the window's result.

| | |
|---|---|
| the query | count per auction over tumbling windows of half a second of event time |
| arrival | every 100 ms a small parquet file appears in a folder, with the rows due since the last one |
| event time | when the row was due, so a window is complete when the first file after its end appears |
| output | when the function has received all rows of the window |
| reported | median and 95th percentile over windows, at each rate, after the first results and a time to settle |

Files, because every engine here reads them, and because no engine can shift their arrival: the producer is a process of
its own and stamps a file just before it appears. Spark's `rate` source is not used: it makes its rows once a second and
stamps them itself. Rows carry their time of arrival too, and the result of a group has the newest one: `age` is
measured from it and includes the wait for the end of the window. A window without a result at the end of the run counts
as if its result arrived then, and is reported as missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from millstream_bench.spark.arrivals import Drops, produce
from millstream_bench.spark.processes import Sampler
from millstream_bench.spark.subject import SubjectFailed, environment
from millstream_bench.spark.throughput.contest import WrongAnswer

RATES = (1_000, 10_000, 50_000)
ROUNDS = 3
_TAIL = 3.0
"""Seconds of rows after the last measured one, so that its window is completed."""
_PATIENCE = 30.0
"""Seconds to wait for overdue windows."""
_LONGEST_START = 180.0
"""Time limit of the first result, in seconds."""


class LatencyContestant(Protocol):
    """An engine that can run the query as a process of its own.

    `python -m MODULE FOLDER OUTPUT STOP` reads files as they appear in FOLDER (`arrivals.SCHEMA`), makes OUTPUT, empty,
    when it is ready, appends a line of JSON at once for every group of rows it receives, and ends when STOP exists.
    A line has `at`, in seconds since the epoch, and `rows`: lists of the end of the window (microseconds), the newest
    `arrived` and the count. A line with `phases` has the durations of the parts of a batch, in milliseconds.
    """

    @property
    def name(self) -> str: ...

    @property
    def module(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SparkLatency:
    """Spark's own operators with the default state store."""

    name: str = "spark"
    module: str = "millstream_bench.spark.latency.native"


def measure(
    contestant: LatencyContestant, rates: Sequence[int] = RATES, *, seconds: float = 20, settle: float = 15
) -> list[dict[str, Any]]:
    """One process for all rates, one after another; the first `settle` seconds of each are not counted."""
    drops, spans = Drops(), []
    with tempfile.TemporaryDirectory(prefix="millstream-latency-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        for folder in ("in", "making"):
            (place / folder).mkdir()
        files = [str(place / part) for part in ("in", "output", "stop")]
        with (place / "log").open("w") as log:
            command = [sys.executable, "-m", contestant.module, *files]
            child = subprocess.Popen(command, cwd=place, env=environment(), stdout=log, stderr=log)
            try:
                with Sampler(child.pid, every=0.5) as sampler:
                    _wait_for(place / "output", child, place / "log")
                    _warm_up(place, rates[0], drops, child)
                    for rate in rates:
                        spans.append(produce(place, rate, settle + seconds, drops))
                    produce(place, rates[0], _TAIL, drops)
                    outputs = _drained(place / "output", drops, spans[-1][1])
                    stopped = time.time()
            finally:
                (place / "stop").touch()
                _finish(child)
    made = []
    for rate, (start, end) in zip(rates, spans, strict=True):
        row = {"name": contestant.name, "rows_per_s": rate}
        row |= percentiles(outputs, drops, start + settle, end, stopped)
        row["phases_ms"] = phases(outputs, start + settle, end)
        row["cpu_s_per_s"] = sum(sampler.record.between(start + settle, end).values()) / (end - start - settle)
        made.append(row)
    return made


def percentiles(
    outputs: list[dict[str, Any]], drops: Drops, start: float, end: float, stopped: float
) -> dict[str, Any]:
    """Summary of the windows completed between two moments (seconds since the epoch)."""
    due = drops.completed_between(start, end)
    finished = _finished(outputs, drops)
    waits = [finished.get(window, stopped) * 1e3 - completed / 1e3 for window, completed in due.items()]
    ages = [output["at"] * 1e3 - row[1] / 1e3 for output in outputs for row in output["rows"] if row[0] in due]
    (latency, latency_p95), (age, age_p95) = _two(waits), _two(ages)
    return {
        "windows": len(due),
        "missing": sum(window not in finished for window in due),
        "latency_ms": latency,
        "latency_p95_ms": latency_p95,
        "age_ms": age,
        "age_p95_ms": age_p95,
    }


def phases(outputs: list[dict[str, Any]], start: float, end: float) -> dict[str, float]:
    """The median time of each part of a batch, of the batches reported between two moments.

    >>> outputs = [{"at": at, "phases": {"plan": at * 10}} for at in (1, 2, 3, 9)]
    >>> phases([*outputs, {"at": 2, "rows": []}], 1, 5)
    {'plan': 20.0}
    """
    made: dict[str, list[float]] = {}
    for output in outputs:
        if start <= output["at"] < end:
            for name, taken in output.get("phases", {}).items():
                made.setdefault(name, []).append(taken)
    return {name: float(np.median(values)) for name, values in made.items()}


def run(
    *,
    out: Path,
    json_file: Path | None = None,
    contestants: Sequence[LatencyContestant] | None = None,
    rates: Sequence[int] = RATES,
    seconds: float = 20,
    settle: float = 15,
    rounds: int = ROUNDS,
) -> list[dict[str, Any]]:
    """Measure the contestants by turns, print a table of medians with their ranges, write JSON of all rounds."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from millstream_bench.spark.throughput.contender import latency_contestants
    from millstream_bench.suite.whole_table import print_whole

    console = Console(highlight=False)
    if contestants is None:
        contestants = [*latency_contestants(), SparkLatency()]
    made: list[dict[str, Any]] = []
    with console.status("", refresh_per_second=2) as status:
        for turn in range(rounds):
            for contestant in contestants:
                status.update(f"latency: {contestant.name}, {turn + 1} of {rounds}")
                made += [row | {"round": turn} for row in measure(contestant, rates, seconds=seconds, settle=settle)]
    title = "from the arrival that completes a window to its result"
    table = Table(title=title, box=SIMPLE, title_justify="left", padding=(0, 1), pad_edge=False)
    for heading in ("", "rows/s", "median", "95 %", "windows", "missing", "cores"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, rate in dict.fromkeys((row["name"], row["rows_per_s"]) for row in made):
        rows = [row for row in made if (row["name"], row["rows_per_s"]) == (name, rate)]
        times = [spread([row[key] for row in rows], " ms") for key in ("latency_ms", "latency_p95_ms")]
        counts = [str(sum(row[key] for row in rows)) for key in ("windows", "missing")]
        table.add_row(name, f"{rate:,}", *times, *counts, spread([row["cpu_s_per_s"] for row in rows], digits=2))
    print_whole(table, console)
    target = json_file or out / "latency.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(made, indent=1))
    console.print(f"written to {target}")
    return made


def spread(values: Sequence[float | None], unit: str = "", digits: int = 0) -> str:
    """The median of some rounds, and their range.

    >>> spread([430.2, 440.0, 425.1], " ms"), spread([1.13], digits=2), spread([None, None])
    ('430 ms (425 to 440)', '1.13', '–')
    """
    there = sorted(value for value in values if value is not None)
    if not there:
        return "–"
    middle = f"{np.median(there):,.{digits}f}{unit}"
    return middle if len(there) == 1 else f"{middle} ({there[0]:,.{digits}f} to {there[-1]:,.{digits}f})"


def _finished(outputs: list[dict[str, Any]], drops: Drops) -> dict[int, float]:
    """Time in seconds at which all rows of each window were counted."""
    counted, finished = Counter[int](), dict[int, float]()
    for output in outputs:
        for window, _, count in output["rows"]:
            counted[window] += count
            if counted[window] == drops.windows[window]:
                finished[window] = output["at"]
            elif counted[window] > drops.windows[window]:
                raise WrongAnswer(f"{counted[window]} rows in a window that has {drops.windows[window]}")
    return finished


def _drained(path: Path, drops: Drops, end: float) -> list[dict[str, Any]]:
    """The outputs, once all windows are there or the time limit is reached."""
    due, deadline = drops.completed_between(0, end), time.time() + _PATIENCE
    while True:
        outputs = _outputs(path)
        if not due.keys() - _finished(outputs, drops).keys() or time.time() > deadline:
            return outputs
        time.sleep(0.5)


def _outputs(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]  # the last line may be incomplete


def _warm_up(place: Path, rate: int, drops: Drops, child: subprocess.Popen[bytes]) -> None:
    """Produce until the first result arrives."""
    began = time.time()
    while not any(output["rows"] for output in _outputs(place / "output")):
        if child.poll() is not None or time.time() - began > _LONGEST_START:
            raise SubjectFailed("no result came\n" + (place / "log").read_text(errors="replace")[-3000:])
        produce(place, rate, 1.0, drops)


def _wait_for(path: Path, child: subprocess.Popen[bytes], log: Path) -> None:
    while not path.exists():
        if child.poll() is not None:
            raise SubjectFailed(log.read_text(errors="replace")[-3000:])
        time.sleep(0.1)


def _finish(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _two(values: list[float]) -> tuple[float | None, float | None]:
    """Median and 95th percentile."""
    if not values:
        return None, None
    return float(np.percentile(values, 50)), float(np.percentile(values, 95))
