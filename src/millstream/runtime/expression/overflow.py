"""Results that do not fit their type: integers, dates, timestamps and intervals have a range.

`overflows` returns a condition that is true for the rows on which an expression uses such a result. A result that is
not used does not count:

| expression | not used |
|---|---|
| `a AND b`, `a OR b` | one side, where the other is false (AND) or true (OR); the order of the sides does not matter |
| the conjuncts of a condition | all others, where one is false or NULL: the row is dropped |
| `CASE`, `IF` | conditions after the first true one, and the values of all other branches |
| `COALESCE` | arguments after the first that is not NULL |

All other operators and functions use all their operands. Where an operator overflows, `to_polars` returns a wrapped
number or NULL; nothing may read it.

A column may hold results of an aggregate that do not fit: `exceeding` names such columns, and a column of marks beside
each (`EXCEEDS`) is true for its rows that do not fit.

>>> from millstream.algebra.expression import Column, Literal
>>> from millstream.runtime.expression.evaluate import to_polars
>>> node = Binary(Type.BIGINT, "+", Column(Type.BIGINT, "x"), Literal(Type.BIGINT, 1))
>>> pl.DataFrame({"x": [1, None, 2**63 - 1]}).select(overflows(node, to_polars)).to_series().to_list()
[False, False, True]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from operator import add, mul, or_, sub

import polars as pl

from millstream.algebra.expression import Binary, Call, Case, Column, Expression, Unary, conjuncts
from millstream.algebra.ranges import LIMITS, OVERFLOWS, can_overflow
from millstream.algebra.types import Type

Translate = Callable[[Expression], pl.Expr]
EXCEEDS = "__exceeds."
"""Prefix of the columns of marks."""
_EXACT: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {"+": add, "-": sub, "*": mul}


def overflows(expression: Expression, to_polars: Translate, exceeding: Collection[str] = ()) -> pl.Expr | None:
    """Return a condition without NULLs: the expression uses a result that does not fit. None: it never does."""
    match expression:
        case Column(name=name):
            return pl.col(EXCEEDS + name) if name in exceeding else None
        case Binary(op="AND" | "OR" as op, left=left, right=right):
            return _either(left, right, op == "OR", to_polars, exceeding)
        case Case(branches=branches, otherwise=otherwise):
            return _case(branches, otherwise, to_polars, exceeding)
        case Call(function="IF", arguments=(condition, *values)):
            return _case(((condition, values[0]),), values[1], to_polars, exceeding)
        case Call(function="COALESCE", arguments=arguments):
            return _coalesce(arguments, to_polars, exceeding)
        case Call(function=name) if name == OVERFLOWS:
            return None
    parts = [overflows(child, to_polars, exceeding) for child in expression.children()]
    if (exact := exact_result(expression, to_polars)) is not None:
        least, most = LIMITS[expression.type]
        parts.append(~exact.is_between(least, most).fill_null(True))
    return _any(parts)


def row_overflows(
    condition: Expression | None, items: Sequence[Expression], to_polars: Translate, exceeding: Collection[str] = ()
) -> pl.Expr | None:
    """Return a condition without NULLs: the row uses a result that does not fit. It uses the items only if the
    condition is true. None: it never does."""
    tests = conjuncts(condition)
    failing = [overflows(test, to_polars, exceeding) for test in tests]
    true = [to_polars(test).fill_null(False) for test in tests]
    parts: list[pl.Expr | None] = []
    if (failed := _any(failing)) is not None:
        known = [holds if fails is None else holds | fails for holds, fails in zip(true, failing, strict=True)]
        parts.append(_all([failed, *known]))
    if (used := _any([overflows(item, to_polars, exceeding) for item in items])) is not None:
        parts.append(_all([used, *true]))
    return _any(parts)


def exact_result(node: Expression, to_polars: Translate) -> pl.Expr | None:
    """Return the result of an operator as a number that does not wrap; None if its results always fit."""
    if not can_overflow(node):
        return None

    def exact(operand: Expression) -> pl.Expr:
        return to_polars(operand).to_physical().cast(pl.Int128)

    match node:
        case Binary(op="*" | "/", left=left, right=right) if node.type is Type.INTERVAL:
            span, number = (left, right) if left.type is Type.INTERVAL else (right, left)
            factor = to_polars(number).cast(pl.Float64)
            scaled = to_polars(span).to_physical().cast(pl.Float64)
            scaled = scaled * factor if node.op == "*" else pl.when(factor != 0).then(scaled / factor)
            # A float just below the limit is far from it, and the limit itself as a float is above it.
            return scaled.round().clip(-1e30, 1e30).fill_nan(1e30).cast(pl.Int128)
        case Binary(op="+" | "-" | "*" as op, left=left, right=right):
            return _EXACT[op](exact(left), exact(right))
        case Unary(op="-", operand=operand):
            return pl.lit(0, pl.Int128) - exact(operand)
        case Call(function="ABS", arguments=(operand,)):
            return exact(operand).abs()
        case Call(function="ROUND", arguments=(operand, digits)):
            return round_integer(exact(operand), to_polars(digits))
    return None


def round_integer(value: pl.Expr, digits: pl.Expr) -> pl.Expr:
    """Return Int128 values rounded to a number of digits, halves away from zero; only negative digits change them."""
    # The half of 10^19 is below the greatest BIGINT, that of 10^20 above it: everything is 0 from there on.
    places = digits.clip(-20, 0).abs()
    scale = pl.lit(1, pl.Int128)
    for exponent in range(1, 21):
        scale = pl.when(places == exponent).then(pl.lit(10**exponent, pl.Int128)).otherwise(scale)
    rounded = (value.abs() + scale // 2) // scale * scale * value.sign()
    return pl.when(digits.is_not_null()).then(rounded)


def _either(
    left: Expression, right: Expression, decisive: bool, to_polars: Translate, exceeding: Collection[str]
) -> pl.Expr | None:
    fails = overflows(left, to_polars, exceeding), overflows(right, to_polars, exceeding)
    undecided = [
        (to_polars(side) != decisive).fill_null(True) if failing is None else (to_polars(side) != decisive) | failing
        for side, failing in zip((left, right), fails, strict=True)
    ]
    parts = [
        None if failing is None else failing & other.fill_null(True)
        for failing, other in zip(fails, reversed(undecided), strict=True)
    ]
    return _any(parts)


def _case(
    branches: Sequence[tuple[Expression, Expression]],
    otherwise: Expression | None,
    to_polars: Translate,
    exceeding: Collection[str],
) -> pl.Expr | None:
    failing = None if otherwise is None else overflows(otherwise, to_polars, exceeding)
    for condition, value in reversed(branches):
        tested, taken = overflows(condition, to_polars, exceeding), overflows(value, to_polars, exceeding)
        if taken is not None or failing is not None:
            false = pl.lit(False)
            chosen = pl.when(to_polars(condition).fill_null(False))
            failing = chosen.then(false if taken is None else taken).otherwise(false if failing is None else failing)
        failing = _any([tested, failing])
    return failing


def _coalesce(arguments: Sequence[Expression], to_polars: Translate, exceeding: Collection[str]) -> pl.Expr | None:
    failing: pl.Expr | None = None
    for argument in reversed(arguments):
        rest = None if failing is None else to_polars(argument).is_null() & failing
        failing = _any([overflows(argument, to_polars, exceeding), rest])
    return failing


def _any(parts: Sequence[pl.Expr | None]) -> pl.Expr | None:
    known = [part for part in parts if part is not None]
    return reduce(or_, known) if known else None


def _all(parts: Sequence[pl.Expr]) -> pl.Expr:
    return reduce(lambda left, right: left & right, parts)
