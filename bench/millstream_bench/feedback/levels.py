"""How far up feedback is acted on: a join, a window, a mean; the first hundred minutes are not wanted.

| level | acts |
|---|---|
| (a) | nothing is sent |
| (b) | the guard above the mean |
| (c) | the mean too: it guards its input, and drops what it holds of these windows |
| (d) | the join too |
| (e) | all, to the source |

Answers are checked: exactly the rows of the disclaimed windows are missing, from (b) on.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl

from millstream_bench.feedback import data
from millstream_bench.feedback.queries import LEVELS, task
from millstream_bench.feedback.sizes import Sizes
from millstream_bench.feedback.subject import Run, Subject, folder_of
from millstream_bench.spark.subject import SubjectFailed
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

WINDOWS = 100
ON = ["SET exploit = 'on'", "SET propagate = 'on'"]
STEPS: dict[str, list[str] | None] = {
    "(a) nothing sent": None,
    "(b) above the mean": ["SET exploit = 'off'", "SET propagate = 'off'"],
    "(c) and the mean": ["SET exploit = 'on; windowjoin: off'", "SET propagate = 'on; windowaggregate: off'"],
    "(d) and the join": ["SET exploit = 'on'", "SET propagate = 'on; windowjoin: off'"],
    "(e) to the source": ON,
}


def levels(sizes: Sizes, tell: Tell = lambda _: None, *, spark: bool = False) -> Finding:
    name, place = ("levels_on_spark", "on Spark") if spark else ("levels", "in process")
    columns = ("level", "read", "join", "mean", "output", "wall s", "CPU s")
    found = Finding(name, f"how far up feedback is acted on, {place}", "Table 7.6", columns)
    with folder_of("levels") as made:
        folder = Path(made)
        data.write(data.sensors(sizes.hours), folder / "sensor", 60)
        end = data.START + timedelta(minutes=min(WINDOWS, sizes.hours * 30))
        said = f"~[window_end <= {end:%Y-%m-%d %H:%M:%S}]"
        rows: dict[str, pl.DataFrame] = {}
        with Subject(spark=spark, cores=sizes.cores) as subject:
            subject.run(task(folder, LEVELS))  # a warm-up
            for number, (level, settings) in enumerate(STEPS.items()):
                tell(f"levels, {level}")
                keep = folder / f"{number}.parquet"
                more: dict[str, Any] = {"keep": {"q": str(keep)}}
                if settings is not None:
                    more |= {"settings": settings, "feedback": {"q": [said]}}
                run = _run(subject, task(folder, LEVELS, **more), settings, found, level)
                if run is not None:
                    rows[level] = pl.read_parquet(keep)
                    _add(found, level, run)
        _check(rows, end)
    return found


def _run(subject: Subject, given: dict[str, Any], settings: Any, found: Finding, level: str) -> Run | None:
    try:
        return subject.run(given)
    except SubjectFailed as error:
        if "unknown option" not in str(error) and "M6001" not in str(error):
            raise
    if settings is ON:
        return subject.run({key: value for key, value in given.items() if key != "settings"})
    found.notes.append(f"{level}: this version has no switches of operators")
    return None


def _add(found: Finding, level: str, run: Run) -> None:
    counts = run.out("source"), run.out("WindowJoin"), run.out("WindowAggregate"), run.rows["q"]
    found.rows.append((level, *counts, run.wall_s, run.cpu_s))
    found.numbers[level] = dict(zip(("read", "join", "mean", "output"), counts, strict=True)) | {"cpu_s": run.cpu_s}


def _check(rows: dict[str, pl.DataFrame], end: Any) -> None:
    whole = rows["(a) nothing sent"].sort("window_end")
    wanted = whole.filter(pl.col("window_end") > end)
    for level, own in rows.items():
        expected = whole if level == "(a) nothing sent" else wanted
        assert own.sort("window_end").equals(expected), f"{level}: other rows than those that are wanted"
