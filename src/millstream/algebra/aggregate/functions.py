"""The aggregate functions of SQL by name: the built-in ones, and those registered by other packages.

NULLs are treated as in SQL: COUNT(x) does not count them, the others skip them, and SUM, AVG, MIN and MAX of no values
are NULL.

| function | partial | from tuples | merge | result | retract |
|---|---|---|---|---|---|
| COUNT(*) | n | number of tuples | sum | n | yes |
| COUNT(x) | n | number of x not NULL | sum | n | yes |
| SUM(x) | s | sum, NULL if there are no values | the same | s | with COUNT(x): the sum of no values is NULL |
| AVG(x) | s, n | sum and COUNT(x) | sums | s / n, NULL if n = 0 | yes |
| MIN(x), MAX(x) | m | least, greatest | the same | m | no |
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.aggregate.function import AggregateFunction, Part
from millstream.algebra.aggregate.reduction import COUNT, GREATEST, LEAST, SUM, TOTAL, Operation
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError, did_you_mean


class Count(AggregateFunction):
    name, type, star = "COUNT", Type.BIGINT, True

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (Part(type_, COUNT, TOTAL),)


class Sum(AggregateFunction):
    name, numeric = "SUM", True

    def result_type(self, argument: Type) -> Type:
        return Type.BIGINT if argument.is_integer else Type.DOUBLE

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (Part(type_, SUM, SUM),)

    def retractable(self, type_: Type) -> tuple[Part, ...] | None:
        return _sum_and_count(type_)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return parts[0] if len(parts) == 1 else pl.when(parts[1] > 0).then(parts[0])


class Avg(AggregateFunction):
    name, spellings, numeric, type = "AVG", ("AVERAGE",), True, Type.DOUBLE

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return _sum_and_count(type_)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return pl.when(parts[1] > 0).then(parts[0] / parts[1])


def _sum_and_count(type_: Type) -> tuple[Part, ...]:
    return Part(type_, TOTAL, TOTAL, "__sum"), Part(Type.BIGINT, COUNT, TOTAL, "__count")


class Extreme(AggregateFunction):
    """MIN or MAX."""

    idempotent = True

    def __init__(self, name: str, operation: Operation) -> None:
        self.name, self._operation = name, operation

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (Part(type_, self._operation, self._operation),)


_FUNCTIONS: dict[str, AggregateFunction] = {}


def register(function: AggregateFunction) -> None:
    """Register a function under all its names, ignoring case; raise BindError if a name is taken."""
    if function.ordered and function.mergeable:
        message = f"{function.name} depends on the order of tuples, so its partial results cannot merge in any order"
        raise PlanError("M3025", message)
    names = [name.lower() for name in (function.name, *function.spellings)]
    for name in names:
        if name in _FUNCTIONS:
            raise BindError("M2010", f"an aggregate function '{name}' exists already")
    _FUNCTIONS.update(dict.fromkeys(names, function))


def unregister(function: AggregateFunction) -> None:
    for name in (function.name, *function.spellings):
        del _FUNCTIONS[name.lower()]


def find(name: str) -> AggregateFunction | None:
    return _FUNCTIONS.get(name.lower())


def lookup(name: str) -> AggregateFunction:
    found = find(name)
    if found is None:
        raise BindError("M2060", f"unknown aggregate function '{name}'", hint=did_you_mean(name, known()))
    return found


def known() -> tuple[str, ...]:
    """All names, in lower case."""
    return tuple(_FUNCTIONS)


for built_in in (Count(), Sum(), Avg(), Extreme("MIN", LEAST), Extreme("MAX", GREATEST)):
    register(built_in)
