"""`millstream bench idle`: time that results wait for a nearly silent stream, on Spark.

Two streams, 1,000 rows a second and one row every two seconds, are merged (`UNION ALL`) or joined, and the results are
counted in windows of half a second. A count can be emitted when neither stream can have another row for its window. The
latency is the time from the creation of the newest row counted to the call of a Python function with the count.

| mode | promise that the silent stream has no earlier row |
|---|---|
| on demand | the stream itself, when an operator waits for it (Millstream's default) |
| heartbeat 1 s | both streams, once a second |
| none | the next row of the silent stream |
| Spark's watermark | the next row of the silent stream: Spark's watermark is that of the slowest stream |

Fairness, and where the contestants differ:

- All read small files that appear in two folders, on the same machine with two cores, and hand the counts to a Python
  function. The producer is the same, in the process of the driver.
- Millstream's streams are stamped on entry (`ORDER BY current_time`), so a silent stream can promise the time: no older
  row can arrive. Spark has no such stamps: its windows are over the creation time of rows, with a watermark of no
  delay. The latency starts at the creation of a row for both. A row stamped on entry may be followed by the rest of its
  window, which counts; the newest row of a window of Spark's is always at its end.
- Spark's plain `union` and inner join emit rows at once, in no order. They do not wait; operators above them that
  depend on time do. Hence the counts.
- Behind its join Spark delays the watermark by the reach of the join (2.5 s), as it cannot know which of the two times
  is used. This is part of its figure.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from millstream_bench.spark.idle.feed import QUERIES
from millstream_bench.spark.subject import SubjectFailed, environment

MODULES = ("millstream_bench.spark.idle.mill", "millstream_bench.spark.idle.native")
_COLOURS = ("#2b6cb0", "#63b3ed", "#a0aec0", "#dd6b20")


def run(*, out: Path, json_file: Path | None = None, seconds: float = 20, settle: float = 10) -> list[dict[str, Any]]:
    """Measure every case, print a table, write JSON and a plot. The first `settle` seconds after the first result of a
    case do not count."""
    from rich.console import Console

    console = Console(highlight=False)
    made: list[dict[str, Any]] = []
    with console.status("", refresh_per_second=2) as status:
        for module in MODULES:
            status.update(f"idle-waiting: {module.rpartition('.')[2]}")
            made += [summary(case) for case in _cases(module, settle, seconds)]
    _print(made, console)
    target = json_file or out / "idle.json"
    for folder in (target.parent, out):
        folder.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(made, indent=1))
    plot(made, out / "idle.png")
    console.print(f"written to {target} and {out / 'idle.png'}")
    return made


def summary(case: dict[str, Any]) -> dict[str, Any]:
    """A case with its mean, median and 95th percentile.

    >>> summary({"mode": "none", "latencies_ms": [100, 300, 200]})["median_ms"]
    200.0
    """
    waits = case["latencies_ms"]
    figures = {"mean_ms": float(np.mean(waits)), "median_ms": float(median(waits))}
    return case | {"counts": len(waits), **figures, "p95_ms": float(np.percentile(waits, 95))}


def plot(made: list[dict[str, Any]], path: Path) -> None:
    """A bar for the median of each mode, a line up to the 95th percentile."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, query in zip(figure.subplots(1, len(QUERIES), sharey=True), QUERIES, strict=True):
        cases = [case for case in made if case["query"] == query]
        for place, (case, colour) in enumerate(zip(cases, _COLOURS, strict=False)):
            middle, high = case["median_ms"] / 1e3, case["p95_ms"] / 1e3
            axes.bar(place, middle, 0.7, color=colour)
            axes.text(place, middle / 2, f"{middle:.2f}", ha="center", va="center", fontsize=9, color="white")
            axes.vlines(place, middle, high, color="#4a5568", linewidth=1)
            axes.text(place, high, f"{high:.2f}", ha="center", va="bottom", fontsize=8, color="#4a5568")
        axes.set_xticks(range(len(cases)), [case["mode"].replace(" ", "\n", 1) for case in cases], fontsize=8)
        axes.set_title(f"counts over a {query}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("seconds from the newest row to its count")
    figure.suptitle("1,000 rows/s and 0.5 rows/s; bars: median, lines: up to the 95th percentile", fontsize=10)
    figure.savefig(path, dpi=130)


def _cases(module: str, settle: float, seconds: float) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="millstream-idle-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        command = [sys.executable, "-m", module, str(settle), str(seconds), "result.json"]
        with (place / "log").open("w") as log:
            child = subprocess.run(command, cwd=place, env=environment(), stdout=log, stderr=log, check=False)
        if child.returncode != 0:
            raise SubjectFailed(f"{module} has failed\n" + (place / "log").read_text(errors="replace")[-3000:])
        made: list[dict[str, Any]] = json.loads((place / "result.json").read_text())
        return made


def _print(made: list[dict[str, Any]], console: Any) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from millstream_bench.suite.whole_table import print_whole

    title = "from the newest row that is counted to the count"
    table = Table(title=title, box=SIMPLE, title_justify="left", padding=(0, 1), pad_edge=False)
    for heading in ("over", "mode", "median", "mean", "95 %", "counts", "complete", "cores"):
        table.add_column(heading, justify="left" if heading in ("over", "mode") else "right", no_wrap=True)
    for case in made:
        times = [f"{case[key]:,.0f} ms" for key in ("median_ms", "mean_ms", "p95_ms")]
        counted = str(case["counts"]), "yes" if case["complete"] else "no", f"{case['cpu_s_per_s']:.2f}"
        table.add_row(case["query"], case["mode"], *times, *counted)
    print_whole(table, console)
