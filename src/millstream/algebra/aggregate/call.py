"""One aggregate of a query: a function of a column, under an output name."""

from __future__ import annotations

import polars as pl

from millstream.algebra.aggregate.function import Part
from millstream.algebra.aggregate.functions import lookup
from millstream.algebra.aggregate.reduction import Reduction
from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type
from millstream.algebra.values import record


@record("aggregate_call")
class AggregateCall:
    """An aggregate function, by name, of an input column (None: `*`), under an output name.

    >>> call = AggregateCall("a", "AVG", "x", Type.DOUBLE)
    >>> print(call, *call.partials, sep=", ")
    AVG(x) AS a, a__sum DOUBLE, a__count BIGINT
    """

    name: str
    function: str
    argument: str | None
    type: Type

    def __str__(self) -> str:
        return f"{self.function}({'*' if self.argument is None else self.argument}) AS {self.name}"

    @property
    def mergeable(self) -> bool:
        return lookup(self.function).mergeable

    @property
    def partials(self) -> tuple[Attribute, ...]:
        """The columns of the partial result."""
        return tuple(Attribute(self.name + part.suffix, part.type) for part in self._parts)

    @property
    def _parts(self) -> tuple[Part, ...]:
        return lookup(self.function).parts(self.type)

    def reductions(self) -> list[Reduction]:
        """Reductions of a group of tuples to its partial result."""
        columns = zip(self.partials, self._parts, strict=True)
        return [Reduction(out.name, part.accumulate, self.argument, out.type.polars) for out, part in columns]

    def merges(self) -> list[Reduction]:
        """Reductions of a group of partial results to one."""
        columns = zip(self.partials, self._parts, strict=True)
        return [Reduction(out.name, part.merge, out.name, out.type.polars) for out, part in columns]

    def result(self) -> pl.Expr:
        """The result, computed from the columns of the partial result."""
        columns = (pl.col(partial.name) for partial in self.partials)
        return lookup(self.function).result(*columns).alias(self.name)
