"""Functions of the order of tuples: by their timestamps, and where these are equal, by arrival.

| function | partial | from tuples | merge, in the order of arrival | result |
|---|---|---|---|---|
| FIRST(x), LAST(x) | t, x | least, greatest timestamp; x of the tuple that has it | the same | x |
| ARRAY_AGG(x) | t, v | lists of timestamps and of x, in order | append, in order | v, NULL if there are no tuples |
| STRING_AGG(x, s) | t, v | the same, without NULL | the same | the texts with s between them, NULL if there are none |

FIRST, LAST and ARRAY_AGG take NULL as a value. The lists are in order at all times: merging sorts by timestamp and
keeps the order of equal ones.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from millstream.algebra.aggregate.collected import items
from millstream.algebra.aggregate.function import ARGUMENT, TIME, AggregateFunction, Parameter, Part
from millstream.algebra.aggregate.reduction import GREATEST, LEAST, Operation
from millstream.algebra.types import Type


def _first(column: pl.Expr, _: pl.DataType, time: pl.Expr) -> pl.Expr:
    return column.filter(time == time.min()).first()


def _last(column: pl.Expr, _: pl.DataType, time: pl.Expr) -> pl.Expr:
    return column.filter(time == time.max()).last()


def _sequence(column: pl.Expr, _: pl.DataType, time: pl.Expr) -> pl.Expr:
    return column.sort_by(time, maintain_order=True).implode()


def _known_sequence(column: pl.Expr, _: pl.DataType, time: pl.Expr) -> pl.Expr:
    known = column.is_not_null()
    return column.filter(known).sort_by(time.filter(known), maintain_order=True).implode()


def _times(time: pl.Expr, _: pl.DataType) -> pl.Expr:
    return time.sort().implode()


def _known_times(time: pl.Expr, _: pl.DataType, column: pl.Expr) -> pl.Expr:
    return time.filter(column.is_not_null()).sort().implode()


FIRST = Operation(_first, null_is_value=True)
LAST = Operation(_last, null_is_value=True)
SEQUENCE = Operation(_sequence, null_is_value=True)
KNOWN_SEQUENCE = Operation(_known_sequence, null_is_value=True)
TIMES = Operation(_times, null_is_value=True)
KNOWN_TIMES = Operation(_known_times, null_is_value=True)
ALL_TIMES = Operation(lambda lists, _: items(lists).sort().implode())
ALL_SEQUENCES = Operation(lambda lists, _, times: items(lists).sort_by(items(times), maintain_order=True).implode())


class Boundary(AggregateFunction):
    """FIRST or LAST."""

    mergeable, ordered, sequential, idempotent = False, True, True, True

    def __init__(self, name: str, *spellings: str, last: bool = False) -> None:
        self.name, self.spellings = name, spellings
        self._time, self._value = (GREATEST, LAST) if last else (LEAST, FIRST)

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (
            Part(Type.BIGINT, self._time, self._time, "__time", inputs=(TIME,)),
            Part(type_, self._value, self._value, "__value", inputs=(ARGUMENT, TIME), beside=("__time",)),
        )

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return parts[1]


class ArrayAgg(AggregateFunction):
    name = "ARRAY_AGG"
    spellings = ("LIST", "COLLECT_LIST")
    mergeable, ordered, sequential = False, True, True

    def __init__(self, *, distinct: bool = False) -> None:
        self._distinct = distinct

    def result_type(self, argument: Type) -> Type:
        return argument.array

    def of_distinct(self) -> AggregateFunction | None:
        return type(self)(distinct=True)

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (
            Part(Type.BIGINT_ARRAY, TIMES, ALL_TIMES, "__times", inputs=(TIME,)),
            Part(type_, SEQUENCE, ALL_SEQUENCES, "__values", inputs=(ARGUMENT, TIME), beside=("__times",)),
        )

    def _values(self, values: pl.Expr) -> pl.Expr:
        values = values.list.unique(maintain_order=True) if self._distinct else values
        return pl.when(values.list.len() > 0).then(values)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return self._values(parts[1])


class StringAgg(ArrayAgg):
    name, spellings = "STRING_AGG", ("LISTAGG", "GROUP_CONCAT")
    takes = Type.VARCHAR
    parameters = (Parameter("the separator", Type.VARCHAR, ","),)

    def __init__(self, separator: str = ",", *, distinct: bool = False) -> None:
        super().__init__(distinct=distinct)
        self._separator = separator

    def result_type(self, argument: Type) -> Type:  # noqa: ARG002
        return Type.VARCHAR

    def with_parameters(self, *values: Any) -> AggregateFunction:
        return StringAgg(*values)

    def of_distinct(self) -> AggregateFunction | None:
        return StringAgg(self._separator, distinct=True)

    def parts(self, type_: Type) -> tuple[Part, ...]:
        times = Part(Type.BIGINT_ARRAY, KNOWN_TIMES, ALL_TIMES, "__times", inputs=(TIME, ARGUMENT))
        return times, Part(
            type_.array, KNOWN_SEQUENCE, ALL_SEQUENCES, "__values", inputs=(ARGUMENT, TIME), beside=("__times",)
        )

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return self._values(parts[1]).list.join(self._separator)


SEQUENCES = (
    Boundary("FIRST", "FIRST_VALUE"),
    Boundary("LAST", "LAST_VALUE", last=True),
    ArrayAgg(),
    StringAgg(),
)
