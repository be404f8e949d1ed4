"""Drive one operator over a list of elements under arbitrary cuts, and strategies that make such lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import polars as pl
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, between, equal, one_of
from millstream.algebra.schema import NEVER, TS, Schema
from millstream.runtime.operator.contract import Input, Operator, Output

Row = dict[str, Any]
RANGES = ["in ts", "in ts", "in ts g", "in w", "in w g"]
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


def reading(random: Random, now: int) -> Row:
    """A tuple over (ts, g, v, w); ts lies around the time at which it comes and equals the hidden timestamp."""
    ts = now + random.randint(-9, 9)
    w = random.choice([None, now + random.randint(-9, 9)])
    return {
        "ts": ts,
        "g": random.choice([1, 1, 2, 3, None]),
        "v": random.choice([None, None, -3, 1, 40]),
        "w": w,
        TS: ts,
    }


def punctuation(random: Random, now: int) -> Pattern:
    """A pattern of any kind; bounds lie mostly before the time at which it comes."""
    bound = below(now + random.randint(-20, -2), random.random() < 0.5)
    group = random.choice([equal(1), equal(2), equal(3), one_of([1, 2]), below(2)])
    kind = random.choice(["ts", "ts", "ts", "ts g", "ts g", "w", "w", "w g", "g", "= ts", "v", "ts v", *RANGES])
    if kind == "= ts":
        return Pattern.of(ts=equal(now + random.randint(-9, 9)))
    if kind == "g" and random.random() < 0.5:
        return Pattern.of(g=equal(9))
    if kind in RANGES:
        low, kind = now + random.randint(-20, 5), kind.removeprefix("in ")
        high = random.choice([None, low, low + 10, low + random.randint(1, 40)])
        bound = between(low, high, random.random() < 0.8, random.random() < 0.2)
    values = {"ts": bound, "w": bound, "g": group, "v": equal(-3)}
    return Pattern.of({name: values[name] for name in kind.split()})


def stream(random: Random, size: int) -> list[Element]:
    """A grammatical stream whose time moves on by one with every element, from before the epoch."""
    made: list[Element] = []
    for now in range(-15, size - 15):
        draw = random.random()
        if draw < 0.7:
            made.append(reading(random, now))
        else:
            made.append(punctuation(random, now) if draw < 0.95 else now + random.randint(-20, -2))
    return grammatical(made, "ts")


def elements() -> st.SearchStrategy[list[Element]]:
    # Lists drawn one by one are short and monotonous on average: too much so for windows to fill and close.
    return st.builds(stream, st.randoms(use_true_random=True), st.sampled_from([5, 25, 60]))


cuts = st.lists(st.booleans(), min_size=1, max_size=12)
