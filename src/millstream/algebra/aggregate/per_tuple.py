"""Functions with a result per tuple, of its place in the window: they need OVER."""

from __future__ import annotations

from millstream.algebra.aggregate.function import AggregateFunction, Parameter, Part
from millstream.algebra.types import Type


class PerTuple(AggregateFunction):
    mergeable, ordered, needs_over = False, True, True

    def parts(self, type_: Type) -> tuple[Part, ...]:  # noqa: ARG002
        return ()


class RowNumber(PerTuple):
    """The number of the tuple in its partition, from 1 on."""

    name, type, argument = "ROW_NUMBER", Type.BIGINT, False


class Lag(PerTuple):
    """The value of an earlier tuple of the partition; NULL if there is none."""

    name = "LAG"
    parameters = (Parameter("the offset", Type.BIGINT, 1, lambda offset: offset >= 0, "not negative"),)


PER_TUPLE = RowNumber(), Lag()
