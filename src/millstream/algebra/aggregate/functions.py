"""The aggregate functions of SQL by name: the built-in ones, and those registered by other packages.

NULLs are treated as in SQL: COUNT(x) does not count them, the others skip them, and SUM, AVG, MIN and MAX of no values
are NULL.

| function | partial | from tuples | merge | result |
|---|---|---|---|---|
| COUNT(*) | n | number of tuples | sum | n |
| COUNT(x) | n | number of x not NULL | sum | n |
| SUM(x) | s | sum, NULL if there are no values | the same | s |
| SUM(x) of integers | s, h | the same modulo 2^64, sum of high halves | sums | s, an error if it wrapped |
| AVG(x) | s, n | sum and COUNT(x) | sums | s / n, NULL if n = 0 |
| AVG(x) of integers | s, n, h | the same, and the sum of high halves | sums | the same, of the true sum |
| MIN(x), MAX(x) | m | least, greatest | the same | m |
| BOOL_AND(x), BOOL_OR(x) | m | least, greatest: false is less than true | the same | m |

The others have a file a family: `moments.py` (variance), `collected.py` (quantiles, DISTINCT), `sequenced.py` (FIRST,
LAST, ARRAY_AGG, STRING_AGG), `sketches.py` (approximations) and `per_tuple.py` (those that need OVER).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from millstream.algebra.aggregate.collected import QUANTILES
from millstream.algebra.aggregate.decay import DecaySum
from millstream.algebra.aggregate.function import AggregateFunction, Course, Part
from millstream.algebra.aggregate.moments import MOMENTS
from millstream.algebra.aggregate.per_tuple import PER_TUPLE
from millstream.algebra.aggregate.reduction import (
    COUNT,
    GREATEST,
    HIGH,
    LEAST,
    SUM,
    TOTAL,
    Operation,
    quick_true_sums,
    sum_fits,
    sums_fit,
    true_sum,
    true_sums,
)
from millstream.algebra.aggregate.sequenced import SEQUENCES
from millstream.algebra.aggregate.sketches import SKETCHES
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError, did_you_mean


class Count(AggregateFunction):
    name, type, star, course = "COUNT", Type.BIGINT, True, Course.RISES

    def check(self, argument: Type) -> None:
        """Values of any type are counted."""

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (Part(type_, COUNT, TOTAL),)


class Sum(AggregateFunction):
    """A sum of integers is a BIGINT. Only the sum of all values must fit: that of some of them may not."""

    name, numeric, course = "SUM", True, Course.RISES_FROM_0

    def result_type(self, argument: Type) -> Type:
        return Type.BIGINT if argument.is_integer else Type.DOUBLE

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (Part(type_, SUM, SUM), *_high(type_))

    def fits(self, *parts: pl.Expr) -> pl.Expr | None:
        return sum_fits(*parts) if len(parts) == 2 else None

    def surely_fits(self, *parts: pl.Series) -> bool:
        return len(parts) == 2 and sums_fit(*parts)

    def written(self, *parts: Any) -> str:
        return str(true_sum(*parts))


class Avg(AggregateFunction):
    name, spellings, numeric, type = "AVG", ("AVERAGE",), True, Type.DOUBLE

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return _sum_and_count(type_)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return pl.when(parts[1] > 0).then(parts[0] / parts[1])

    def quick_result(self, *parts: pl.Series) -> pl.Series | None:
        sums, counts = (part.to_numpy() for part in parts)
        return pl.Series(sums / counts) if counts.all() else None

    def of(self, argument: Type) -> AggregateFunction:
        return _INTEGER_AVG if argument.is_integer else self


class IntegerAvg(Avg):
    """AVG of integers, whose sum is exact: the result does not depend on the order of tuples."""

    def parts(self, type_: Type) -> tuple[Part, ...]:  # noqa: ARG002
        return (*_sum_and_count(Type.BIGINT), *_high(Type.BIGINT))

    def result(self, *parts: pl.Expr) -> pl.Expr:
        total, count, high = parts
        return pl.when(count > 0).then(true_sums(total, high) / count)

    def quick_result(self, *parts: pl.Series) -> pl.Series | None:
        total, count, high = parts
        counts = count.to_numpy()
        return pl.Series(quick_true_sums(total, high) / counts) if counts.all() else None


_INTEGER_AVG = IntegerAvg()


def _sum_and_count(type_: Type) -> tuple[Part, ...]:
    return Part(type_, TOTAL, TOTAL, "__sum"), Part(Type.BIGINT, COUNT, TOTAL, "__count")


def _high(type_: Type) -> tuple[Part, ...]:
    return (Part(type_, HIGH, TOTAL, "__high"),) if type_.is_integer else ()


class Extreme(AggregateFunction):
    """MIN or MAX."""

    idempotent = True

    def __init__(self, name: str, operation: Operation) -> None:
        self.name, self._operation = name, operation
        self.course = Course.RISES if operation is GREATEST else Course.FALLS

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (Part(type_, self._operation, self._operation),)


class Condition(Extreme):
    """BOOL_AND or BOOL_OR."""

    type = Type.BOOLEAN

    def __init__(self, name: str, *spellings: str, operation: Operation) -> None:
        super().__init__(name, operation)
        self.spellings = spellings

    def check(self, argument: Type) -> None:
        if argument not in (Type.BOOLEAN, Type.NULL):
            raise BindError("M2006", f"{self.name} needs a condition, not {argument.value}")


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


for built_in in (
    *(Count(), Sum(), Avg(), Extreme("MIN", LEAST), Extreme("MAX", GREATEST)),
    *(Condition("BOOL_AND", "EVERY", operation=LEAST), Condition("BOOL_OR", operation=GREATEST)),
    *(*MOMENTS, *QUANTILES, *SEQUENCES, *PER_TUPLE, *SKETCHES, DecaySum()),
):
    register(built_in)
