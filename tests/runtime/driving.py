"""Drive one operator over a list of elements under arbitrary cuts, and strategies that make such lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from hypothesis import strategies as st

from millstream.algebra.pattern import Pattern, below, equal, one_of
from millstream.algebra.punctuation import Punctuations
from millstream.algebra.schema import NEVER, TS, Schema
from millstream.runtime.operator import Input, Operator, Output

Row = dict[str, Any]
Element = Row | Pattern | int
"""A tuple (with its hidden timestamp), a punctuation, or a silent bound on time."""


def frame(schema: Schema, rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(
        [[row[name] for name in schema.polars] for row in rows], schema=schema.polars, orient="row", strict=True
    )


def progress_of(pattern: Pattern, time: str | None) -> int:
    if time is None or pattern.attributes != {time} or not pattern.get(time).is_upper:
        return NEVER
    return int(pattern.get(time).hi)


@dataclass
class Trace:
    rows: list[Row] = field(default_factory=list)
    punctuations: list[Pattern] = field(default_factory=list)
    promised: list[Pattern] = field(default_factory=list)
    progress: int = NEVER

    def take(self, output: Output) -> None:
        """Add what an operator put out; fails if it is not grammatical."""
        if output.rows is not None:
            for row in output.rows.to_dicts():
                assert row[TS] >= self.progress, (row, self.progress)
                assert not any(pattern.matches(row) for pattern in self.punctuations), row
                self.rows.append(row)
        if output.punctuations is not None:
            self.punctuations += output.punctuations.patterns()
            self.progress = max(self.progress, output.punctuations.progress)

    def bags(self) -> tuple[Counter[Any], Counter[Any]]:
        return bag(self.rows), Counter(self.punctuations)


def bag(rows: Sequence[Row]) -> Counter[Any]:
    return Counter(tuple(sorted(row.items(), key=lambda item: item[0])) for row in rows)


def steps(elements: Sequence[Element], cuts: Sequence[bool], schema: Schema, time: str | None) -> list[Input]:
    """The elements as steps, cut after every element whose flag is set: all tuples of a step, then its punctuations."""
    made: list[Input] = []
    rows: list[Row] = []
    patterns: list[Pattern] = []
    progress, bound = NEVER, NEVER
    for index, element in enumerate(elements):
        if isinstance(element, dict):
            rows.append(element)
        elif isinstance(element, Pattern):
            patterns.append(element)
            progress = max(progress, progress_of(element, time))
        else:
            bound = max(bound, element)
        if index == len(elements) - 1 or cuts[index % len(cuts)]:
            punctuations = Punctuations.of(patterns, progress) if patterns else None
            made.append(Input(frame(schema, rows) if rows else None, punctuations, bound))
            rows, patterns, progress = [], [], NEVER
    return made


def drive(inputs: Sequence[Input], *operators: Operator, after: Callable[[], None] | None = None) -> Trace:
    """Run a chain of one-input operators; each step goes all the way up."""
    trace = Trace()
    for step in inputs:
        port, output = step, Output()
        for operator in operators:
            output = operator.process([port])
            port = Input(output.rows, output.punctuations, operator.output_bound([port.bound]))
        trace.take(output)
        if after is not None:
            after()
    return trace


def grammatical(elements: Sequence[Element], time: str | None) -> list[Element]:
    """Without the tuples that an earlier punctuation or bound rules out."""
    kept: list[Element] = []
    patterns: list[Pattern] = []
    bound = NEVER
    for element in elements:
        if isinstance(element, Pattern):
            patterns.append(element)
            bound = max(bound, progress_of(element, time))
        elif isinstance(element, int):
            bound = max(bound, element)
        elif element[TS] < bound or any(pattern.matches(element) for pattern in patterns):
            continue
        kept.append(element)
    return kept


times = st.integers(-30, 50)
groups = st.sampled_from([1, 2, 3, None])


def readings() -> st.SearchStrategy[Row]:
    """Tuples over (ts, g, v, w): a time that equals the hidden timestamp, a group, and two nullable values."""
    made = st.tuples(times, groups, st.sampled_from([None, -3, 0, 1, 2, 40]), st.one_of(st.none(), times))
    return made.map(lambda t: {"ts": t[0], "g": t[1], "v": t[2], "w": t[3], TS: t[0]})


def patterns() -> st.SearchStrategy[Pattern]:
    bounds = st.builds(below, times, st.booleans())
    keys = st.one_of(st.sampled_from([1, 2, 3]).map(equal), st.just(one_of([1, 2])), st.just(below(2)))
    return st.one_of(
        bounds.map(lambda b: Pattern.of(ts=b)),
        bounds.map(lambda b: Pattern.of(ts=b)),
        keys.map(lambda k: Pattern.of(g=k)),
        st.builds(lambda b, k: Pattern.of(ts=b, g=k), bounds, keys),
        bounds.map(lambda b: Pattern.of(w=b)),
        st.builds(lambda b, k: Pattern.of(w=b, g=k), bounds, keys),
        times.map(lambda t: Pattern.of(ts=equal(t))),
        st.just(Pattern.of(v=equal(1))),
        st.builds(lambda b: Pattern.of(ts=b, v=equal(2)), bounds),
    )


def elements(bounds: bool = True) -> st.SearchStrategy[list[Element]]:
    choices = [readings(), readings(), readings(), patterns(), *([times] if bounds else [])]
    return st.lists(st.one_of(*choices), max_size=40).map(lambda made: grammatical(made, "ts"))


cuts = st.lists(st.booleans(), min_size=1, max_size=12)
