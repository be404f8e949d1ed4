"""What it costs to be able to receive feedback, if none is sent: this version without its code of feedback against it.

The version without is a copy of the sources from which that code is taken out (`unaware`), so that the two differ in
nothing else. `--baseline` names a checkout to compare with as well, such as the version before feedback; all that was
added since counts there.

| | in process | on Spark |
|---|---|---|
| a pair | two new processes; each query three times in each, in turns | all queries in one job, a session each |
| what counts | the fewest CPU seconds of the three | CPU seconds of all processes |

A pair has one ratio. Runs alternate, so that a slow minute of the machine meets both; new processes, with another seed
of hashes for each pair, so that the accidents of one process do not meet all pairs. The median of the ratios counts,
and the interval that has the median of all such ratios in 95 of 100 cases, from the order of the pairs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

from millstream_bench.feedback import data
from millstream_bench.feedback.queries import OVERHEAD, declared, task
from millstream_bench.feedback.sizes import Sizes
from millstream_bench.feedback.subject import Subject, baseline, folder_of
from millstream_bench.feedback.unaware import without_feedback
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

Pair = tuple[float, float]
"""CPU seconds without and with."""
SAME = "the same without feedback"
OLDER = "an older version"
ALL = "all three"
WARM_UP = 2
"""Pairs on Spark that do not count."""
STEADY = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""The JVMs of both do without their second compiler: its work in the background takes more than what is measured."""


def overhead(sizes: Sizes, tell: Tell = lambda _: None, *, spark: bool = False) -> Finding:
    name, place = ("overhead_on_spark", "on Spark") if spark else ("overhead", "in process")
    columns = ("query", "against", "without, CPU s", "with, CPU s", "ratio", "from", "to")
    found = Finding(name, f"feedback-aware, none sent, {place}", "Table 7.4", columns)
    older = baseline()
    with folder_of("overhead") as made:
        folder = Path(made)
        others = {SAME: without_feedback(folder)} | ({} if older is None else {OLDER: older})
        hours, minutes = (sizes.hours, 240) if spark else (sizes.steady_hours, 60)
        data.write(data.sensors(hours), folder / "sensor", minutes)
        data.locations().write_parquet(folder / "location.parquet")
        for against, other in others.items():
            measured = _on_spark if spark else _in_process
            pairs: dict[str, list[Pair]] = {}
            for query, pair in measured(folder, other, sizes, lambda said: tell(f"overhead, {said}")):
                pairs.setdefault(query, []).append(pair)
            for query, spent in pairs.items():
                _add(found, query, against, spent)
    count = sizes.pairs_on_spark if spark else sizes.pairs
    found.notes.append(f"medians of {count} interleaved pairs; 95 % interval of the median ratio")
    return found


def _add(found: Finding, query: str, against: str, spent: list[Pair]) -> None:
    ratios = [b / a for a, b in spent]
    low, high = interval(ratios)
    without, aware = (median(pair[side] for pair in spent) for side in (0, 1))
    found.rows.append((query, against, without, aware, median(ratios), low, high))
    key = query if against == SAME else f"{query}, {against}"
    found.numbers[key] = {"ratio": median(ratios), "interval": [low, high], "pairs": ratios}


def _in_process(folder: Path, other: Path, sizes: Sizes, tell: Tell) -> Iterator[tuple[str, Pair]]:
    tasks = {query: task(folder, text) for query, text in OVERHEAD.items()}
    for number in range(sizes.pairs):
        same = {"PYTHONHASHSEED": str(number)}
        with (
            Subject(spark=False, baseline=other, variables=same) as without,
            Subject(spark=False, variables=same) as aware,
        ):
            sides = (without, aware) if number % 2 else (aware, without)
            for query, each in tasks.items():
                tell(f"{query}, pair {number + 1} of {sizes.pairs}")
                for subject in sides:
                    subject.run(each)  # a warm-up
                yield query, _pair(query, each, without, aware, (*sides, *reversed(sides), *sides))


def _on_spark(folder: Path, other: Path, sizes: Sizes, tell: Tell) -> Iterator[tuple[str, Pair]]:
    queries = {f"q{number}": text for number, text in enumerate(OVERHEAD.values(), 1)}
    each = {"setup": declared(folder, " ".join(queries.values())), "queries": queries}
    with (
        Subject(spark=True, cores=sizes.cores, baseline=other, variables=STEADY) as without,
        Subject(spark=True, cores=sizes.cores, variables=STEADY) as aware,
    ):
        for number in range(-WARM_UP, sizes.pairs_on_spark):
            tell(f"pair {max(number + 1, 0)} of {sizes.pairs_on_spark}")
            sides = (without, aware) if number % 2 else (aware, without)
            pair = _pair(ALL, each, without, aware, sides)
            if number >= 0:
                yield ALL, pair


def _pair(query: str, each: dict[str, Any], without: Subject, aware: Subject, order: tuple[Subject, ...]) -> Pair:
    runs = [(subject, subject.run(each)) for subject in order]
    answers = {str(run.rows) for _, run in runs}
    if len(answers) > 1:
        raise AssertionError(f"{query}: rows differ: {' and '.join(answers)}")
    spent = {side: [run.cpu_s for subject, run in runs if subject is side] for side in (without, aware)}
    return min(spent[without]), min(spent[aware])


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
