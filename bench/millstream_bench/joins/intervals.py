"""Interval joins: CPU time per tuple by the number of tuples in a step.

The same streams are cut into steps of any size. A window is given as the tuples that a stream has in it. Results do not
depend on the steps, so the time per tuple should hardly do either: tiny steps pay their fixed costs, large ones their
cache misses, and no step the square of its tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from millstream_bench.joins.drive import Trace, pwjoin, run, same
from millstream_bench.joins.sizes import Sizes
from millstream_bench.joins.streams import GAP, Punctuated, arrivals, steps, table
from millstream_bench.suite.report import Finding

SKEWED = 0
"""Stands for keys of which the most frequent one has half of the tuples, the next a quarter, and so on."""


@dataclass(frozen=True, slots=True)
class Case:
    keys: int
    window: int

    @property
    def name(self) -> str:
        return f"{f'{self.keys:,}' if self.keys else 'skewed'} keys, {self.window:,}"


CASES = (Case(10, 100), Case(1_000, 100), Case(1_000, 10_000), Case(100_000, 10_000), Case(SKEWED, 20))


def intervals(sizes: Sizes) -> Finding:
    """CPU time per tuple by step, for few and many keys and for short and long windows."""
    made = Finding(
        "intervals",
        "interval joins: CPU microseconds per tuple, by tuples in a step",
        "",
        ("keys, window", *(_short(rows) for rows in sizes.steps)),
    )
    for case in CASES:
        streams = _streams(case, sizes.stepped // 2)
        traces = {rows: _fastest(case, streams, rows, sizes.rounds) for rows in sizes.steps}
        found, _ = same(case.name, {f"{rows}": trace for rows, trace in traces.items()})
        cost = [trace.seconds / sizes.stepped * 1e6 for trace in traces.values()]
        made.rows.append((case.name, *(f"{each:.2f}" for each in cost)))
        made.curves[case.name] = {"rows": list(sizes.steps), "us": cost}
        made.numbers[case.name] = {"results_per_tuple": found / sizes.stepped, "hump": hump(cost)}
    made.notes.append(f"{sizes.stepped:,} tuples of both streams; hump: cost over that of smaller and larger steps")
    for name, numbers in made.numbers.items():
        made.notes.append(f"{name}: {numbers['results_per_tuple']:.2g} results a tuple, hump {numbers['hump']:.2f}")
    return made


def hump(costs: list[float]) -> float:
    """How much the cost of a step may exceed that of both some smaller and some larger one: the largest ratio.

    >>> hump([9, 3, 2, 6, 4]), hump([9, 3, 2]), hump([1, 2, 3])
    (1.5, 1.0, 1.0)
    """
    before = list(accumulate(costs, min))
    after = list(accumulate(costs[::-1], min))[::-1]
    return max(cost / max(lower, later) for cost, lower, later in zip(costs, before, after, strict=True))


def _short(rows: int) -> str:
    return f"{rows // 1000}k" if rows >= 1000 else f"{rows}"


def _fastest(case: Case, streams: list[Punctuated], rows: int, rounds: int) -> Trace:
    cut = steps(streams, rows // 2 * GAP, timed=True)
    return min((run(pwjoin(case.window * GAP), cut) for _ in range(rounds)), key=lambda trace: trace.seconds)


def _streams(case: Case, count: int) -> list[Punctuated]:
    draw = np.random.default_rng(0)
    nothing = np.zeros(0, dtype=np.int64)
    made = []
    for _ in range(2):
        times = arrivals(draw, count)
        keys = draw.integers(0, case.keys, count) if case.keys else draw.geometric(0.5, count)
        made.append(Punctuated(table(times, keys, draw), nothing, nothing))
    return made
