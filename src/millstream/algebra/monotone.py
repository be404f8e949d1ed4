"""Monotone expressions: what a bound on one column says about an expression over it.

| expression over x | |
|---|---|
| x, x + c, c + x, x - c, x * c with c > 0: integers and times | rises strictly |
| the same with fractions; x / c with c > 0; FLOOR, CEIL, ROUND; EXTRACT of YEAR and EPOCH | rises, may stand still |
| - x, c - x, x * c and x / c with c < 0 | falls |
| CAST between integers, DATE to TIMESTAMP, TIMESTAMP and DATE to VARCHAR | rises strictly |
| the first characters of such a text: SUBSTRING(x, 1, 10) | rises, may stand still |
| CAST between other numbers, and from TIMESTAMP to DATE or a number, and back | rises, may stand still |
| any other: two columns, %, CASE, a number as text | not monotone |

If no later x is below v, no later f(x) is below f(v), where f rises. If no later x equals v either, no later f(x)
equals f(v), provided that f rises strictly.

>>> ts = Column(Type.BIGINT, "ts")
>>> monotone(Binary(Type.BIGINT, "-", ts, Literal(Type.BIGINT, 3)))
Monotone(column='ts', rises=True, strict=True)
>>> monotone(Cast(Type.VARCHAR, ts)) is None
True
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from millstream.algebra.expression import Binary, Call, Cast, Column, Expression, Literal, Unary
from millstream.algebra.types import Type

_STEPS = ("FLOOR", "CEIL", "ROUND")
_PARTS = ("YEAR", "EPOCH")


@dataclass(frozen=True, slots=True)
class Monotone:
    """An expression that rises, or falls, with one column. Not `strict`: different values may give the same result."""

    column: str
    rises: bool = True
    strict: bool = True

    def then(self, *, rises: bool = True, strict: bool) -> Monotone:
        """Return how a monotone function of this expression follows the column."""
        return Monotone(self.column, self.rises == rises, self.strict and strict)


def monotone(expression: Expression) -> Monotone | None:
    """Return how the expression follows its only column; None if it is not known to be monotone."""
    match expression:
        case Column(name=name):
            return Monotone(name)
        case Unary(op="-", operand=operand):
            return _of(operand, rises=False, strict=True)
        case Cast(type=type_, operand=operand):
            strict = _strict_cast(operand.type, type_)
            return None if strict is None else _of(operand, strict=strict)
        case Binary(op="+" | "-" | "*" | "/"):
            return _arithmetic(expression)
        case Call(function=function, arguments=(operand, *rest)) if function in _STEPS:
            return None if any(digits.columns() for digits in rest) else _of(operand, strict=False)
        case Call(function="SUBSTRING", arguments=(operand, Literal(value=0 | 1), Literal())):
            return _of(operand, strict=False)
        case Call(function="EXTRACT", arguments=(Literal(value=part), operand)):
            timed = operand.type is not Type.INTERVAL or part == "EPOCH"
            return _of(operand, strict=False) if timed and part in _PARTS else None
    return None


class Rises(NamedTuple):
    """A computed column that rises with another one."""

    column: str
    name: str
    expression: Expression
    strict: bool


def rising(items: Iterable[tuple[str, Expression]], columns: Container[str]) -> tuple[Rises, ...]:
    """Return the computed items that rise with one of the columns, in their order."""
    found: list[Rises] = []
    for name, item in items:
        follows = None if isinstance(item, Column) else monotone(item)
        if follows is not None and follows.rises and follows.column in columns:
            found.append(Rises(follows.column, name, item, follows.strict))
    return tuple(found)


def first_of_each(found: Iterable[Rises], known: Container[str]) -> tuple[dict[str, Rises], tuple[Rises, ...]]:
    """Return the first item of each column that is not known otherwise, and all other items. The others say nothing new
    of later tuples."""
    first: dict[str, Rises] = {}
    others: list[Rises] = []
    for item in found:
        if item.column in known or item.column in first:
            others.append(item)
        else:
            first[item.column] = item
    return first, tuple(others)


def _of(operand: Expression, *, rises: bool = True, strict: bool) -> Monotone | None:
    inner = monotone(operand)
    return None if inner is None else inner.then(rises=rises, strict=strict)


def _arithmetic(node: Binary) -> Monotone | None:
    op, left, right = node.op, node.left, node.right
    exact = all(part.type.is_integer or not part.type.is_numeric for part in (node, left, right))
    if not right.columns():
        if op in ("+", "-"):
            return _of(left, strict=exact)
        sign = _sign(right)
        return _of(left, rises=sign > 0, strict=exact and node.type.is_integer and op == "*") if sign else None
    if left.columns() or op == "/":
        return None
    if op in ("+", "-"):
        return _of(right, rises=op == "+", strict=exact)
    sign = _sign(left)
    return _of(right, rises=sign > 0, strict=exact and node.type.is_integer) if sign else None


def _sign(expression: Expression) -> int:
    """Return 1 or -1 for a constant factor above or below zero; 0 if it is zero, NULL or unknown."""
    match expression:
        case Literal(value=timedelta() as value):
            return _order(value, timedelta(0))
        case Literal(value=int() | float() as value):
            return _order(value, 0)
        case Unary(op="-", operand=operand):
            return -_sign(operand)
        case Cast(type=type_, operand=operand) if type_.is_numeric and operand.type.is_numeric:
            return _sign(operand)
    return 0


def _order(value: Any, zero: Any) -> int:
    return int(value > zero) - int(value < zero)


def _strict_cast(source: Type, target: Type) -> bool | None:
    """Return whether a cast keeps different values different; None if it does not keep their order."""
    times = (Type.TIMESTAMP, Type.INTERVAL)
    if source is target or (source.is_integer and target.is_integer) or (source, target) == (Type.DATE, Type.TIMESTAMP):
        return True
    if (source.is_numeric or source in times) and (target.is_numeric or target in times):
        return None if source in times and target in times else False
    if target is Type.VARCHAR and source in (Type.TIMESTAMP, Type.DATE):
        return True  # years have four digits, and a time without a fraction is shorter than one with it
    return False if (source, target) == (Type.TIMESTAMP, Type.DATE) else None
