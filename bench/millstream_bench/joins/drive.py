"""Run joins in this process and record CPU time, results, state and punctuation.

Only the operators' own work is timed. Answers are compared by the number of results and by the sum of the products of
their numbers, which a wrong pair changes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

import polars as pl

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.algebra.window import Window
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.state.table import StateTable
from millstream_bench.joins.plain import PlainJoin
from millstream_bench.joins.streams import Step

SIDE = Schema.of(("k", Type.BIGINT), ("v", Type.BIGINT))
PAIR = Schema.of(("a.k", Type.BIGINT), ("a.v", Type.BIGINT), ("b.k", Type.BIGINT), ("b.v", Type.BIGINT))
PAGE_ROWS = 8192
STEP_ROWS = 16 * PAGE_ROWS

SMALL = 1009

Answer = tuple[int, int]


class WrongAnswer(AssertionError):
    """Two joins of the same streams have different results, so comparing them means nothing."""


@dataclass(slots=True)
class Trace:
    """Record of a run; lists have an entry for each step."""

    cpu_s: list[float] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    sides: list[tuple[int, ...]] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    """Bytes of state, if measured."""
    punctuations: list[int] = field(default_factory=list)
    check: int = 0

    @property
    def seconds(self) -> float:
        return sum(self.cpu_s)

    @property
    def rows(self) -> int:
        return sum(self.results)

    @property
    def answer(self) -> Answer:
        return self.rows, self.check

    def steady(self, values: Sequence[float]) -> float:
        """The mean over the second half of the run."""
        return mean(values[len(values) // 2 :])


def pjoin(settings: JoinSettings | None = None) -> WindowJoin:
    """The punctuated join without windows."""
    made = WindowJoin(SIDE, SIDE, PAIR, (("k", "k"),))
    if settings is not None:
        made.configure(settings)
    return made


def pwjoin(window: int | None) -> WindowJoin:
    """The punctuated join with equal windows, on streams in order."""
    kept = Window(window)
    return WindowJoin(SIDE, SIDE, PAIR, (("k", "k"),), None, kept, kept, merges=window is not None)


def plain(window: int | None = None) -> PlainJoin:
    return PlainJoin(SIDE, SIDE, PAIR, "k", Window(window), merges=window is not None)


def run(join: Operator, steps: Sequence[Step], *, sized: bool = False) -> Trace:
    made = Trace()
    gc.collect()
    for step in steps:
        _perform(join, step, made, sized=sized)
    return made


def _perform(join: Operator, step: Step, trace: Trace, *, sized: bool = False) -> None:
    start = time.process_time()
    out = join.process(step)
    trace.cpu_s.append(time.process_time() - start)
    note(trace, out, join.tables(), sized=sized)


def abreast(joins: Mapping[str, Callable[[], Operator]], steps: Sequence[Step], rounds: int) -> dict[str, list[Trace]]:
    """Run joins side by side, each step through all of them, a different one first each time: a disturbance of the
    machine longer than a step disturbs all of them alike."""
    made: dict[str, list[Trace]] = {name: [] for name in joins}
    names = list(joins)
    for number in range(rounds):
        running = {name: (make(), Trace()) for name, make in joins.items()}
        gc.collect()
        for at, step in enumerate(steps, number):
            first = at % len(names)
            for name in names[first:] + names[:first]:
                _perform(running[name][0], step, running[name][1])
        for name, (_, trace) in running.items():
            made[name].append(trace)
    return made


def note(trace: Trace, out: Output | Input, tables: Mapping[str, StateTable], *, sized: bool) -> None:
    """Add a step's results and state to a trace."""
    trace.results.append(0 if out.rows is None else out.rows.height)
    trace.check += 0 if out.rows is None else product_sum(out.rows)
    trace.punctuations.append(0 if out.punctuations is None else len(out.punctuations))
    held = tuple(len(table) for table in tables.values())
    trace.sides.append(held)
    trace.state.append(sum(held))
    if sized:
        trace.size.append(sum(table.size() for table in tables.values()))


def product_sum(rows: pl.DataFrame) -> int:
    """The sum over all rows of the product of their numbers, reduced to small ones first.

    >>> product_sum(pl.DataFrame({"a.k": [1, 1], "a.v": [2, 3], "b.v": [5, 7]}))
    31
    """
    columns = [rows.get_column(name).to_numpy() for name in rows.columns if name == "v" or name.endswith(".v")]
    product = columns[0] % SMALL
    for column in columns[1:]:
        product = product * (column % SMALL)
    return int(product.sum())


def same(title: str, traces: Mapping[str, Trace]) -> Answer:
    """Raise if answers differ."""
    answers = {name: trace.answer for name, trace in traces.items()}
    if len(set(answers.values())) != 1:
        raise WrongAnswer(f"{title}: the answers differ: {answers}")
    return next(iter(answers.values()))


def by_turns(
    contestants: Mapping[str, Callable[[], Trace]], rounds: int
) -> tuple[dict[str, list[Trace]], Callable[[str, str], float]]:
    """Run all contestants `rounds` times, every other round in the opposite order. The function returned computes the
    median over the rounds of the ratio of two contestants' CPU times."""
    made: dict[str, list[Trace]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name in list(contestants)[:: 1 if number % 2 == 0 else -1]:
            made[name].append(contestants[name]())

    def ratio(one: str, other: str) -> float:
        pairs = zip(made[one], made[other], strict=True)
        return median(a.seconds / b.seconds for a, b in pairs)

    return made, ratio
