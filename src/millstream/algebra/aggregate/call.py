"""One aggregate of a query: a function of a column, under an output name."""

from __future__ import annotations

from typing import Any

import polars as pl

from millstream.algebra.aggregate.collected import Distinct
from millstream.algebra.aggregate.function import TIME, AggregateFunction, Course, Part
from millstream.algebra.aggregate.functions import lookup
from millstream.algebra.aggregate.reduction import Reduction
from millstream.algebra.schema import TS, Attribute
from millstream.algebra.types import Type
from millstream.algebra.values import record


@record("aggregate_call")
class AggregateCall:
    """An aggregate function, by name, of an input column (None: `*`), under an output name.

    >>> call = AggregateCall("a", "AVG", "x", Type.DOUBLE)
    >>> print(call, *call.partials, sep=", ")
    AVG(x) AS a, a__sum DOUBLE, a__count BIGINT
    >>> print(AggregateCall("n", "COUNT", "x", Type.BIGINT, distinct=Type.INT, filter="f"))
    COUNT(DISTINCT x) FILTER (WHERE f) AS n
    """

    name: str
    function: str
    argument: str | None
    type: Type
    parameters: tuple[Any, ...] = ()
    """The constants after the argument."""
    distinct: Type | None = None
    """With DISTINCT, the type of the argument; None: duplicates are taken too."""
    filter: str | None = None
    """A BOOLEAN input column: only tuples in which it is true are taken."""
    of: Type | None = None
    """The type of the argument, if the function computes differently by it."""

    def __str__(self) -> str:
        return f"{self.text} AS {self.name}"

    @property
    def text(self) -> str:
        """The call without its output name."""
        constants = (f"'{p}'" if isinstance(p, str) else str(p) for p in self.parameters)
        inside = ", ".join(("*" if self.argument is None else self.argument, *constants))
        filtered = "" if self.filter is None else f" FILTER (WHERE {self.filter})"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{inside}){filtered}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that it reads, without the timestamp."""
        return tuple(dict.fromkeys(name for name in (self.argument, self.filter) if name is not None))

    @property
    def outputs(self) -> tuple[Attribute, ...]:
        """The columns of the result."""
        return (Attribute(self.name, self.type),)

    @property
    def plain(self) -> bool:
        """True if the result is the first column of the partial result."""
        return type(self.computed).result is AggregateFunction.result

    @property
    def collects(self) -> bool:
        """True if its partial result has all values that it was computed of."""
        return any(part.type.is_array for part in self.parts)

    @property
    def mergeable(self) -> bool:
        return self.computed.mergeable

    @property
    def ordered(self) -> bool:
        return self.computed.ordered

    @property
    def course(self) -> Course:
        """How further tuples may move the result; DISTINCT and FILTER leave some of them out."""
        return lookup(self.function).course

    @property
    def partials(self) -> tuple[Attribute, ...]:
        """The columns of the partial result."""
        return tuple(Attribute(self.name + part.suffix, part.type) for part in self.parts)

    @property
    def computed(self) -> AggregateFunction:
        """The function with its parameters, of distinct values if DISTINCT is given."""
        found = lookup(self.function)
        found = found if self.of is None else found.of(self.of)
        found = found.with_parameters(*self.parameters) if self.parameters else found
        if self.distinct is None:
            return found
        return found.of_distinct() or Distinct(found, self.distinct, self.type)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the partial result, one for each of its columns."""
        return self.computed.parts(self.type)

    def reductions(self) -> list[Reduction]:
        """Reductions of a group of tuples to its partial result."""
        made = []
        for out, part in zip(self.partials, self.parts, strict=True):
            column, *others = (TS if name == TIME else self.argument for name in part.inputs)
            beside = tuple(name for name in others if name is not None)
            made.append(Reduction(out.name, part.accumulate, column, out.type.polars, beside, self.filter))
        return made

    def merges(self) -> list[Reduction]:
        """Reductions of a group of partial results to one."""
        made = []
        for out, part in zip(self.partials, self.parts, strict=True):
            beside = tuple(self.name + suffix for suffix in part.beside)
            made.append(Reduction(out.name, part.merge, out.name, out.type.polars, beside))
        return made

    def result(self) -> pl.Expr:
        """The result, computed from the columns of the partial result."""
        columns = (pl.col(partial.name) for partial in self.partials)
        return self.computed.result(*columns).alias(self.name)

    def quick_result(self, partials: pl.DataFrame) -> pl.Series | None:
        """The same result of these partial results, if it is quick to compute."""
        found = self.computed.quick_result(*(partials.get_column(part.name) for part in self.partials))
        return None if found is None else found.alias(self.name)

    def fits(self) -> pl.Expr | None:
        """Whether the result fits its type, computed from the columns of the partial result; None: it always does."""
        fits = self.computed.fits(*(pl.col(partial.name) for partial in self.partials))
        return None if fits is None else fits.fill_null(True)

    def written(self, partials: pl.DataFrame) -> str:
        """The result of one group that does not fit its type, as text."""
        return self.computed.written(*(partials.get_column(part.name)[0] for part in self.partials))
