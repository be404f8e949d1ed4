"""The span of values that an expression can have on a page, from the least and greatest values of its columns.

A page on which no operator can leave the range of its type needs no check of its rows. A least and a greatest value
cost far less than the check.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta

from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, Literal, Unary
from millstream.algebra.overflow import OVERFLOWS, can_overflow
from millstream.algebra.types import Type, micros
from millstream.runtime.expression.overflow import EPOCH_DAY, LIMITS

Span = tuple[int, int]
_NONE: Span = (0, 0)
"""The span of values without a range, and of no values."""


class MayOverflow(Exception):
    """An operator may leave the range of its type on this page."""


def span(node: Expression, of_column: Callable[[Column], Span]) -> Span:
    """Return the span of an expression; raise MayOverflow if a result inside it may not fit."""
    match node:
        case Column(type=type_):
            return of_column(node) if type_ in LIMITS else _NONE
        case Literal(type=type_, value=value):
            return (_physical(value),) * 2 if type_ in LIMITS and value is not None else _NONE
        case Call(function=name) if name == OVERFLOWS:
            return _NONE
    spans = [span(child, of_column) for child in node.children()]
    if node.type not in LIMITS:
        return _NONE
    least, most = LIMITS[node.type]
    match node:
        case Binary(op="*" | "/") if node.type is Type.INTERVAL:
            raise MayOverflow
        case Binary(op="+" | "-" | "*" as op):
            (low, high), (other_low, other_high) = spans
            if op == "*":
                products = [a * b for a in (low, high) for b in (other_low, other_high)]
                found = min(products), max(products)
            elif op == "+":
                found = low + other_low, high + other_high
            else:
                found = low - other_high, high - other_low
        case Unary(op="-") | Call(function="ABS"):
            low, high = spans[0]
            found = min(low, -high), max(high, -low)
        case Call(function="SIGN"):
            return -1, 1
        case Call(function="FLOOR" | "CEIL"):
            return spans[0]
        case Call(function="ROUND"):
            if can_overflow(node):
                raise MayOverflow
            return spans[0]
        case Case(branches=branches, otherwise=otherwise):
            values = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
            return _union([span(value, of_column) for value in values])
        case Call(function="COALESCE" | "GREATEST" | "LEAST"):
            return _union(spans)
        case Cast(operand=operand) if operand.type.is_integer and node.type.is_integer:
            return max(spans[0][0], least), min(spans[0][1], most)
        case _:
            return least, most
    if found[0] < least or found[1] > most:
        raise MayOverflow
    return found


def always_fits(expression: Expression) -> bool:
    """Return whether all results fit, whatever the columns hold."""
    try:
        span(expression, lambda column: LIMITS[column.type])
    except MayOverflow:
        return False
    return True


def _union(spans: list[Span]) -> Span:
    return min(low for low, _ in spans), max(high for _, high in spans)


def _physical(value: int | datetime | timedelta | date) -> int:
    """Return a literal as pages represent it."""
    if isinstance(value, int):
        return value
    if isinstance(value, datetime | timedelta):
        return micros(value)
    return value.toordinal() - EPOCH_DAY
