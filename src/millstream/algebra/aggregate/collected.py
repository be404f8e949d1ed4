"""Functions of all values of a group: its partial result is the list of them.

| function | partial | from tuples | merge | result |
|---|---|---|---|---|
| MEDIAN(x), QUANTILE_CONT(x, p) | v | list of x not NULL | append | the value at p * (n - 1) in order, interpolated |
| QUANTILE_DISC(x, p) | v | the same | the same | the first value with at least p * n values up to it |
| f(DISTINCT x) | v | list of distinct x not NULL | append, distinct | f of the values |

NaN is greater than all other numbers. Such a list takes as much room as its tuples, so it is made where they are held:
neither sources nor panes make it.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from millstream.algebra.aggregate.function import AggregateFunction, Parameter, Part
from millstream.algebra.aggregate.reduction import Operation
from millstream.algebra.types import Type


def _values(column: pl.Expr, type_: pl.DataType) -> pl.Expr:
    return column.drop_nulls().implode().cast(type_)


def _distinct_values(column: pl.Expr, type_: pl.DataType) -> pl.Expr:
    return column.drop_nulls().unique(maintain_order=True).implode().cast(type_)


def _united(lists: pl.Expr, _: pl.DataType) -> pl.Expr:
    return items(lists).unique(maintain_order=True).implode()


def items(lists: pl.Expr) -> pl.Expr:
    """The items of all lists of a group."""
    return lists.explode(empty_as_null=False, keep_nulls=False)


VALUES = Operation(_values)
ALL_VALUES = Operation(lambda lists, _: items(lists).implode())
DISTINCT_VALUES = Operation(_distinct_values)
DISTINCT_VALUES_UNITED = Operation(_united)


def list_part(type_: Type, *, distinct: bool) -> Part:
    """The part that holds a list of values of this type."""
    if distinct:
        return Part(type_.array, DISTINCT_VALUES, DISTINCT_VALUES_UNITED, "__values")
    return Part(type_.array, VALUES, ALL_VALUES, "__values")


def _share(percent: float) -> str:
    return f"{percent} per cent are {percent / 100:g}" if 1 < percent <= 100 else ""


SHARE = Parameter("the share p", Type.DOUBLE, valid=lambda p: 0 <= p <= 1, range="between 0 and 1", hint=_share)


class Quantile(AggregateFunction):
    """The value that has the share `p` of the values below it; `exact`: one of the values, not one between two."""

    mergeable, sequential, within_group = False, True, True
    parameters: tuple[Parameter, ...] = (SHARE,)

    def __init__(
        self, name: str, *spellings: str, exact: bool = False, p: float | None = None, distinct: bool = False
    ) -> None:
        self.name, self.spellings, self.numeric = name, spellings, not exact
        self.type = None if exact else Type.DOUBLE
        self.exact, self.share, self.distinct = exact, p, distinct

    def with_parameters(self, *values: Any) -> AggregateFunction:
        return Quantile(self.name, exact=self.exact, p=values[0])

    def of_distinct(self) -> AggregateFunction | None:
        return Quantile(self.name, exact=self.exact, p=self.share, distinct=True)

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (list_part(type_, distinct=self.distinct),)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        assert self.share is not None
        if not self.exact:
            return parts[0].list.agg(pl.element().quantile(self.share, "linear"))
        return at_share(parts[0], self.share)


def at_share(values: pl.Expr, share: float) -> pl.Expr:
    """The first value in ascending order with at least this share of the values of a list up to it."""
    ranked = values.list.sort()
    count = ranked.list.len().cast(pl.Int64)
    # Of 7 values, the share 1/7 is the first one, although 7 * (1/7) may exceed 1 by a rounding error.
    place = count - (count - share * count).floor().cast(pl.Int64)
    return ranked.list.get((place - 1).clip(0), null_on_oob=True)


class Distinct(AggregateFunction):
    """A function of the distinct values of its argument, with a result of this type, from a list of the values."""

    mergeable, sequential = False, True

    def __init__(self, function: AggregateFunction, argument: Type, result: Type) -> None:
        self.name, self.type = function.name, result
        self._function, self._argument, self._parts = function, argument, function.parts(result)

    def parts(self, type_: Type) -> tuple[Part, ...]:  # noqa: ARG002
        return (list_part(self._argument, distinct=True),)

    def _reduced(self, values: pl.Expr) -> list[pl.Expr]:
        """The columns of the function's own partial result."""
        return [values.list.agg(part.accumulate.expression(pl.element(), part.type.polars)) for part in self._parts]

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return self._function.result(*self._reduced(parts[0]))

    def fits(self, *parts: pl.Expr) -> pl.Expr | None:
        return self._function.fits(*self._reduced(parts[0]))

    def written(self, *parts: Any) -> str:
        held = pl.Series("values", [parts[0]], dtype=self._argument.array.polars).to_frame()
        return self._function.written(*(held.select(part).item() for part in self._reduced(pl.col("values"))))


class Median(Quantile):
    within_group, parameters = False, ()

    def __init__(self) -> None:
        super().__init__("MEDIAN", p=0.5)

    def with_parameters(self, *_: Any) -> AggregateFunction:
        return self


QUANTILES = (
    Median(),
    Quantile("QUANTILE_CONT", "PERCENTILE_CONT", "PERCENTILE"),
    Quantile("QUANTILE_DISC", "PERCENTILE_DISC", "QUANTILE", exact=True),
)
