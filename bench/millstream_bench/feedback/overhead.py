"""What it costs to be able to receive feedback, if none is sent: a version without it against this one.

Runs of both alternate, so that a slow minute of the machine meets both. The ratio of each pair counts: their median,
and the interval that has the median of all such ratios in 95 of 100 cases, from the order of the pairs alone.

The version without feedback is a checkout that `--baseline` names. Without it this version runs against itself, which
shows how far the machine can tell two equal things apart.
"""

from __future__ import annotations

from math import comb
from pathlib import Path
from statistics import median
from typing import Any

from millstream_bench.feedback import data
from millstream_bench.feedback.queries import OVERHEAD, task
from millstream_bench.feedback.sizes import Sizes
from millstream_bench.feedback.subject import Subject, baseline, folder_of
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell


def overhead(sizes: Sizes, tell: Tell = lambda _: None, *, spark: bool = False) -> Finding:
    name, place = ("overhead_on_spark", "on Spark") if spark else ("overhead", "in process")
    columns = ("query", "without, CPU s", "with, CPU s", "ratio", "from", "to")
    found = Finding(name, f"feedback-aware, none sent, {place}", "Table 7.4", columns)
    other = baseline()
    with folder_of("overhead") as made:
        folder = _written(Path(made), sizes.hours if spark else sizes.steady_hours)
        tasks = {query: task(folder, text) for query, text in OVERHEAD.items()}
        with (
            Subject(spark=spark, cores=sizes.cores, baseline=other) as without,
            Subject(spark=spark, cores=sizes.cores) as aware,
        ):
            pairs = _measured(tasks, without, aware, sizes, tell)
    for query, spent in pairs.items():
        low, high = interval([b / a for a, b in spent])
        ratio = median(b / a for a, b in spent)
        found.rows.append((query, median(a for a, _ in spent), median(b for _, b in spent), ratio, low, high))
        found.numbers[query] = {"ratio": ratio, "interval": [low, high], "pairs": [b / a for a, b in spent]}
    found.numbers["baseline"] = other is not None
    if other is None:
        found.notes.append("no --baseline: the same version twice")
    found.notes.append(f"medians of {sizes.pairs} interleaved pairs; 95 % interval of the median ratio")
    return found


def _written(folder: Path, hours: int) -> Path:
    data.write(data.sensors(hours), folder / "sensor", 60)
    data.locations().write_parquet(folder / "location.parquet")
    return folder


def _measured(
    tasks: dict[str, dict[str, Any]], without: Subject, aware: Subject, sizes: Sizes, tell: Tell
) -> dict[str, list[tuple[float, float]]]:
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for number in range(sizes.pairs + 1):  # the first one warms up
        for name, each in tasks.items():
            tell(f"overhead, {name}, pair {number} of {sizes.pairs}")
            spent: dict[Subject, float] = {}
            answers: dict[str, dict[str, int]] = {}
            for subject in (without, aware) if number % 2 else (aware, without):
                run = subject.run(each)
                spent[subject] = run.cpu_s
                answers["without" if subject is without else "with"] = run.rows
            if answers["without"] != answers["with"]:
                raise AssertionError(
                    f"{name}, pair {number}: {answers['without']} rows without, {answers['with']} with"
                )
            if number:
                pairs[name].append((spent[without], spent[aware]))
    return pairs


def interval(values: list[float]) -> tuple[float, float]:
    """The interval between two of the values that has the median with a probability of 95 % or more.

    >>> interval([float(n) for n in range(1, 11)])
    (2.0, 9.0)
    >>> interval([1.0, 2.0])
    (1.0, 2.0)
    """
    ordered, n = sorted(values), len(values)
    outside, k = 0.0, 0
    while k < n // 2 and outside + comb(n, k) / 2**n <= 0.025:
        outside += comb(n, k) / 2**n
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]
