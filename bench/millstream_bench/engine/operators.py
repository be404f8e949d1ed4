"""Operators for experiments on scheduling: they process pages of one row with as little work as possible, so that
virtual time measures the schedule."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.runtime.operator.contract import NOTHING, Input, Operator, Output
from millstream_bench.engine.workload import SCHEMA


class Keep(Operator):
    """A selection that passes this fraction of the tuples."""

    schema = SCHEMA

    def __init__(self, fraction: float) -> None:
        self.fraction = fraction

    def process(self, inputs: Sequence[Input]) -> Output:
        rows = inputs[0].rows
        if rows is not None and rows.item(0, 0) < self.fraction:
            return Output(rows)
        return Output(None, inputs[0].punctuations)


class Pass(Operator):
    """A projection."""

    schema = SCHEMA

    def process(self, inputs: Sequence[Input]) -> Output:
        return Output(inputs[0].rows, inputs[0].punctuations)


class Slide(Operator):
    """An aggregate that reports after every s-th tuple."""

    schema = SCHEMA

    def __init__(self, slide: int) -> None:
        self.slide = slide
        self.seen = 0

    def process(self, inputs: Sequence[Input]) -> Output:
        rows = inputs[0].rows
        if rows is None:
            return Output(None, inputs[0].punctuations)
        self.seen += 1
        return Output(rows) if self.seen % self.slide == 0 else NOTHING


class Merge(Operator):
    """A union in timestamp order."""

    schema = SCHEMA
    arity = 2
    merges = True

    def process(self, inputs: Sequence[Input]) -> Output:
        left, right = inputs
        return Output(right.rows if left.rows is None else left.rows)


class Mix(Merge):
    """A union of latent streams: nothing waits."""

    merges = False
