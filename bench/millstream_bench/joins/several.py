"""Three and four streams in one operator, against the trees of window joins with the same results.

Windows of 10 s, a punctuation every 10 tuples. Either all streams are punctuated, and a tuple has about 10 or 2
partners in every other stream. Or one stream is, and 40 % of all tuples are droppable: they belong to other streams,
and the punctuated stream has closed their value and has no tuple of it left in the window. `unaware` receives no
punctuation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from millstream_bench.joins.drive import Trace, by_turns, run, same
from millstream_bench.joins.sizes import Sizes
from millstream_bench.joins.streams import (
    SECOND,
    Punctuated,
    Step,
    arrivals,
    in_step,
    moments,
    steps,
    stream,
    table,
    values,
)
from millstream_bench.joins.trees import Shape, named, run_tree, shapes, together, written
from millstream_bench.suite.report import Finding, thinned

WINDOW, EVERY = 10, 10
DROPPABLE = 0.4
ONE, UNAWARE = "one operator", ", unaware"


@dataclass(frozen=True, slots=True)
class Case:
    streams: int
    partners: int
    rate: int
    """Tuples a second and stream."""
    seconds: int
    droppable: bool = False

    @property
    def name(self) -> str:
        what = f"{DROPPABLE:.0%} droppable" if self.droppable else f"{self.partners} partners"
        return f"{self.streams} streams, {what}, {self.rate:,}/s"

    @property
    def gap(self) -> int:
        return SECOND // self.rate

    @property
    def width(self) -> int:
        """Number of open values: a window then has about `partners` tuples of each."""
        return WINDOW * self.rate // self.partners


def cases(sizes: Sizes) -> list[Case]:
    few, slow, fast = sizes.seconds, 100, sizes.fast_rate
    return [
        Case(3, 10, slow, few),
        Case(3, 2, slow, few),
        Case(4, 10, slow, few // 2),
        Case(4, 2, slow, few),
        Case(4, 2, fast, 2 * WINDOW),
        Case(3, 5, slow, few, droppable=True),
        Case(4, 5, slow, few, droppable=True),
        Case(4, 2, fast, 2 * WINDOW, droppable=True),
    ]


def several(sizes: Sizes) -> Finding:
    made = Finding(
        "several",
        f"several streams in one operator and as trees; windows of {WINDOW} s",
        "8.5–8.7",
        ("join", "state", "MB", "CPU s", "time", "less"),
    )
    for case in cases(sizes):
        _compare(made, case, sizes.rounds)
    made.notes.append("*: the fastest tree, to which times refer; less: how much less memory the one operator takes")
    return made


def with_droppable(case: Case) -> tuple[list[Punctuated], float]:
    """The stream that closes values, the others, and the share of all tuples that can be dropped."""
    draw = np.random.default_rng(0)
    tuples = case.rate * case.seconds
    times = arrivals(draw, tuples, case.gap)
    reach = WINDOW * case.rate // EVERY
    # Closed before the first tuple, so that the other streams have closed values to draw from at once.
    before = np.zeros(2 * reach + case.width, dtype=np.int64)
    shut = np.concatenate([before, moments(draw, float(times[-1]), EVERY * case.gap)])
    made, droppable = [stream(draw, times, shut, case.width)], 0
    for _ in range(case.streams - 1):
        own = arrivals(draw, tuples, case.gap)
        keys = values(draw, own, shut, case.width)
        # Closed more than a window ago: the last tuple is outside it.
        dead = np.searchsorted(shut, own, side="right") - reach * 5 // 4 - draw.integers(0, case.width, tuples)
        chosen = draw.random(tuples) < DROPPABLE * case.streams / (case.streams - 1)
        droppable += int(chosen.sum())
        nothing = np.zeros(0, dtype=np.int64)
        made.append(Punctuated(table(own, np.where(chosen, dead, keys), draw), nothing, nothing))
    return made, droppable / (tuples * case.streams)


def _compare(made: Finding, case: Case, rounds: int) -> None:
    if case.droppable:
        streams, share = with_droppable(case)
    else:
        tuples = case.rate * case.seconds
        streams, share = in_step(tuples, EVERY, width=case.width, streams=case.streams, gap=case.gap), 0.0
    heard = [not case.droppable or number == 0 for number in range(case.streams)]
    cut = [named(step) for step in steps(streams, SECOND, punctuated=heard, timed=True)]
    traces, ratio = by_turns(_contestants(case, cut), rounds)
    best = {name: min(found, key=lambda trace: trace.seconds) for name, found in traces.items()}
    same(case.name, best)
    trees = [written(shape) for shape in shapes(case.streams)]
    size = {name: trace.steady(trace.size) for name, trace in best.items()}
    fastest = min(trees, key=lambda name: best[name].seconds)
    smallest = min(trees, key=lambda name: size[name])
    made.rows.append((case.name, *[None] * (len(made.columns) - 1)))
    for name, trace in best.items():
        label = f"  {name} *" if name == fastest else f"  {name}"
        saved = None if name == ONE else f"{1 - size[ONE] / size[name]:.0%}"
        held = round(trace.steady(trace.state))
        made.rows.append((label, held, size[name] / 1e6, trace.seconds, ratio(name, fastest), saved))
    deaf = min((name + UNAWARE for name in (trees[0], trees[-1])), key=lambda name: best[name].seconds)
    made.numbers[case.name] = {
        "time_ratio": ratio(ONE, fastest),
        "time_ratio_unaware": ratio(ONE + UNAWARE, deaf),
        "memory_ratio": size[ONE] / size[fastest],
        "memory_ratio_smallest": size[ONE] / size[smallest],
        "memory_ratio_unaware": size[ONE] / size[ONE + UNAWARE],
        "droppable": share,
    }
    made.curves[case.name] = {
        name: {"state": thinned(best[name].state), "cpu_s": best[name].seconds, "bytes": size[name]}
        for name in (ONE, ONE + UNAWARE, fastest)
    }


def _contestants(case: Case, cut: list[Step]) -> dict[str, Callable[[], Trace]]:
    count, window = case.streams, WINDOW * SECOND
    silent = [tuple(replace(port, punctuations=None) for port in step) for step in cut]

    def tree(shape: Shape, given: list[Step]) -> Callable[[], Trace]:
        return lambda: run_tree(shape, window, given)

    trees = shapes(count)
    return {
        ONE: lambda: run(together(count, window), cut, sized=True),
        ONE + UNAWARE: lambda: run(together(count, window), silent, sized=True),
        **{written(shape): tree(shape, cut) for shape in trees},
        **{written(shape) + UNAWARE: tree(shape, silent) for shape in (trees[0], trees[-1])},
    }
