"""What very broad feedback saves: three queries of which 99 % is disclaimed before they read anything.

A run costs something even without rows: its batches. So the same queries run over as many files with a row each, and
time and CPU time above such an empty run are compared. Spark's own operators run beside them; they cannot be told.

Answers are checked: exactly the rows that were disclaimed are missing.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from millstream.algebra.feedback import parse_feedback
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream_bench.feedback import data, native
from millstream_bench.feedback.queries import PLANS, RESOURCES, disclaiming, task
from millstream_bench.feedback.sizes import Sizes
from millstream_bench.feedback.subject import Run, Subject, folder_of
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

WAYS = ("empty", "off", "on")
COLUMNS = {"Q1": ("ts", Type.TIMESTAMP), "Q1, one detector": ("sensor_id", Type.BIGINT)}
"""The column that feedback restricts; of the others the end of the window."""


def resources(sizes: Sizes, tell: Tell = lambda _: None, *, spark: bool = False) -> Finding:
    name, place = ("resources_on_spark", "on Spark") if spark else ("resources", "in process")
    columns = ("query", "rows out: off", "on", "tuples: off", "on", "CPU s: empty", "off", "on", "saved",
               "wall s: empty", "off", "on", "saved", "Spark's own, CPU s")  # fmt: skip
    found = Finding(name, f"99 % disclaimed at once, {place}", "Tables 7.7–7.9", columns)
    with folder_of("resources") as made:
        folder, empty = Path(made) / "full", Path(made) / "empty"
        _write(folder, empty, sizes)
        with Subject(spark=spark, cores=sizes.cores) as subject:
            for query in RESOURCES:
                subject.run(task(empty, RESOURCES[query]))  # a warm-up
                runs = _runs(subject, query, folder, empty, sizes, tell)
                _check(query, folder, disclaiming(sizes.broad_hours)[query])
                _add(found, query, runs)
        if spark:
            tell("resources, Spark's own operators")
            _beside(found, native.measured(folder, sizes))
    found.notes.append(
        f"{sizes.broad_hours} hours, {sizes.broad_minutes // 60} a batch; medians of {sizes.rounds} interleaved runs"
    )
    return found


def _write(folder: Path, empty: Path, sizes: Sizes) -> None:
    for name, rows in (("sensor", data.sensors(sizes.broad_hours)), ("probe", data.probes(sizes.broad_hours))):
        data.write(rows, folder / name, sizes.broad_minutes)
        data.nearly_empty(rows, empty / name, sizes.broad_minutes)
    for each in (folder, empty):
        data.locations().write_parquet(each / "location.parquet")


def _runs(subject: Subject, query: str, folder: Path, empty: Path, sizes: Sizes, tell: Tell) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {way: [] for way in WAYS}
    for number in range(sizes.rounds):
        for way in WAYS if number % 2 else reversed(WAYS):
            tell(f"resources, {query}, {way}, round {number + 1} of {sizes.rounds}")
            more: dict[str, Any] = {"keep": {"q": str(folder / f"{query}-{way}.parquet")}}
            if way == "on":
                more["feedback"] = {"q": [disclaiming(sizes.broad_hours)[query]]}
            runs[way].append(subject.run(task(empty if way == "empty" else folder, RESOURCES[query], **more)))
    return runs


def _check(query: str, folder: Path, said: str) -> None:
    """Raise AssertionError unless exactly the rows that match are missing."""
    off, on = (pl.read_parquet(folder / f"{query}-{way}.parquet") for way in ("off", "on"))
    restricted = COLUMNS.get(query, ("window_end", Type.TIMESTAMP))
    wanted = off.filter(~parse_feedback(said, Schema.of(restricted)).pattern.match(off))
    assert on.height == wanted.height, f"{query}: {on.height} rows, expected {wanted.height}"
    by = on.columns
    assert on.sort(by).equals(wanted.sort(by)), f"{query}: other rows than those that are wanted"


def _add(found: Finding, query: str, runs: dict[str, list[Run]]) -> None:
    cpu = {way: median(run.cpu_s for run in own) for way, own in runs.items()}
    wall = {way: median(run.wall_s for run in own) for way, own in runs.items()}
    saved = [_saved(**each) for each in (cpu, wall)]
    tuples = {way: sum(c[0] for kind, c in runs[way][-1].operators["q"].items() if kind != "sink") for way in WAYS}
    rows = {way: runs[way][-1].rows["q"] for way in WAYS}
    found.rows.append((
        f"{query}: {PLANS[query]}", rows["off"], rows["on"], tuples["off"], tuples["on"],
        *cpu.values(), saved[0], *wall.values(), saved[1], None,
    ))  # fmt: skip
    found.numbers[query] = {"cpu_s": cpu, "wall_s": wall, "saved_cpu": saved[0], "saved_wall": saved[1], "rows": rows,
                            "tuples": tuples}  # fmt: skip


def _saved(empty: float, off: float, on: float) -> float | None:
    """The share of the time above that of an empty run; None if there is hardly any.

    >>> _saved(1.0, 11.0, 3.0), _saved(7.9, 7.7, 8.4)
    (0.8, None)
    """
    return None if off < 1.2 * empty else 1 - (on - empty) / (off - empty)


def _beside(found: Finding, measured: dict[str, dict[str, float]]) -> None:
    for number, query in enumerate(RESOURCES):
        if query not in measured:
            continue
        found.rows[number] = (*found.rows[number][:-1], measured[query]["cpu_s"])
        found.numbers[query]["spark"] = measured[query]
