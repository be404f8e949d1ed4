"""A sum in which earlier values count less: `s = a * s + b * x` with each value, from 0 on.

Its partial result is the map of a sum from before the tuples to one after them, `s → f * s + d`; maps of consecutive
tuples compose, so that the functions of OVER compute it like any other fold.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from millstream.algebra.aggregate.function import AggregateFunction, Parameter, Part
from millstream.algebra.aggregate.reduction import Operation
from millstream.algebra.types import Type


def _only_over(*_: Any) -> pl.Expr:
    raise NotImplementedError("DECAY_SUM needs OVER")


FACTOR, DECAYED = Operation(_only_over), Operation(_only_over)


class DecaySum(AggregateFunction):
    """NULLs are skipped."""

    name, type, numeric, takes = "DECAY_SUM", Type.DOUBLE, True, Type.DOUBLE
    mergeable, ordered, needs_over = False, True, True
    parameters = (
        Parameter("the factor of the sum", Type.DOUBLE, None, lambda a: 0 < a <= 1, "above 0, at most 1", "a"),
        Parameter("the factor of the value", Type.DOUBLE, 1.0),
    )

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return Part(type_, FACTOR, FACTOR, "__factor"), Part(type_, DECAYED, DECAYED, "__decayed")

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return parts[1]
