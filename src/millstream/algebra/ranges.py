"""The ranges of the values that expressions can have, and the operators whose results may not fit their types.

`Ranges` finds the range of an expression from those of its columns: of all values of their types when a query is
planned, of the values of a page while it runs. A page on which no operator can leave the range of its type needs no
check of its rows (`runtime/expression/overflow.py`). A least and a greatest value cost far less than the check.

A join pushes a condition on one side down to that side. A tuple that finds no partner uses no value of the condition,
so a condition that may overflow is pushed in a form that never does, and the join tests the condition itself on pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from math import inf, isfinite

from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, Literal, Unary
from millstream.algebra.types import Type, micros

OVERFLOWS = "OVERFLOWS"
"""The function of a condition and items that is true if a row uses a value that does not fit."""
EPOCH_DAY = date(1970, 1, 1).toordinal()
LIMITS: dict[Type, tuple[int, int]] = {
    Type.INT: (-(1 << 31), (1 << 31) - 1),
    Type.BIGINT: (-(1 << 63), (1 << 63) - 1),
    Type.INTERVAL: (-(1 << 63), (1 << 63) - 1),
    Type.TIMESTAMP: (micros(datetime.min), micros(datetime.max)),
    Type.DATE: (date.min.toordinal() - EPOCH_DAY, date.max.toordinal() - EPOCH_DAY),
}
"""The least and the greatest value of each type that has a range, as pages represent it."""
Range = tuple[float, float]
"""A least and a greatest value: integers for the types that have a range, finite ones for DOUBLE."""
ANYTHING: Range = (-inf, inf)
"""The range of all other types, and of a DOUBLE of which nothing is known."""


class Ranges:
    """The ranges of expressions, given those of columns. A result that does not fit is in none of them."""

    def __init__(self, of_column: Callable[[Column], Range]) -> None:
        self._of_column = of_column
        self.fit = True
        """Whether all results so far, also those inside the expressions, surely fit their types."""

    def of(self, node: Expression) -> Range:
        """Return the range of an expression. That of NULL is any; here it has 0."""
        match node:
            case Column():
                return self._of_column(node) if node.type in LIMITS else ANYTHING
            case Literal(value=value) if value is None or node.type in LIMITS:
                return (0 if value is None else _physical(value),) * 2
            case Literal(type=Type.DOUBLE, value=int() | float() as value) if isfinite(value):
                return float(value), float(value)
            case Call(function=name) if name == OVERFLOWS:
                return ANYTHING
        parts = [self.of(child) for child in node.children()]
        if node.type not in LIMITS:
            return of_operator(node, parts) if node.type is Type.DOUBLE else ANYTHING
        least, most = LIMITS[node.type]
        low, high = of_operator(node, parts)
        if (low < least or high > most) and can_overflow(node):
            self.fit = False
        return min(max(low, least), most), max(min(high, most), least)


def of_operator(node: Expression, parts: list[Range]) -> Range:
    """Return the range of the results of an operator, whether or not they fit, given those of its operands."""
    match node:
        case Binary(op="/", type=Type.DOUBLE) if parts[1][0] == parts[1][1] != 0:
            ends = [end / parts[1][0] for end in parts[0]]
            return min(ends), max(ends)
        case Binary(type=Type.DOUBLE) | Binary(op="*" | "/", type=Type.INTERVAL):
            return ANYTHING
        case Binary(op="+"):
            return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]
        case Binary(op="-"):
            return parts[0][0] - parts[1][1], parts[0][1] - parts[1][0]
        case Binary(op="*"):
            products = [a * b for a in parts[0] for b in parts[1]]
            return min(products), max(products)
        case Unary(op="-"):
            return -parts[0][1], -parts[0][0]
        case Call(function="ABS"):
            return max(0, parts[0][0], -parts[0][1]), max(-parts[0][0], parts[0][1])
        case Call(function="SIGN"):
            return -1, 1
        case Call(function="LN"):
            return -746, 710
        case Call(function="FLOOR" | "CEIL", arguments=(operand,)):
            return parts[0] if operand.type.is_integer else (parts[0][0] - 1, parts[0][1] + 1)
        case Call(function="ROUND") if node.type in LIMITS and not can_overflow(node):
            return parts[0]
        case Case(branches=branches):
            last = 2 * len(branches)
            return united((*parts[1:last:2], *parts[last:]))
        case Call(function="COALESCE" | "GREATEST" | "LEAST"):
            return united(parts)
        case Cast(operand=operand) if operand.type.is_integer and node.type.is_integer:
            return parts[0]
        case Cast(type=Type.DOUBLE, operand=operand) if operand.type.is_integer:
            return float(parts[0][0]), float(parts[0][1])  # rounded, as the values are
        case Cast(operand=operand) if operand.type is Type.DOUBLE and node.type.is_integer:
            return parts[0][0] - 1, parts[0][1] + 1
    return ANYTHING


def united(ranges: Iterable[Range]) -> Range:
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def always_fits(expression: Expression) -> bool:
    """Return whether all results fit, whatever the columns hold."""
    ranges = Ranges(lambda column: LIMITS[column.type])
    ranges.of(expression)
    return ranges.fit


def can_overflow(node: Expression) -> bool:
    """True if the operator itself, not its operands, may have a result that does not fit."""
    match node:
        case Binary(type=type_, op="+" | "-" | "*"):
            return type_ in LIMITS
        case Binary(type=Type.INTERVAL, op="/"):
            return True
        case Unary(type=type_, op="-") | Call(type=type_, function="ABS"):
            return type_ in LIMITS
        case Call(type=type_, function="ROUND", arguments=(_, digits)):
            raises = not (isinstance(digits, Literal) and (digits.value is None or digits.value >= 0))
            return type_ in LIMITS and raises
    return False


def guarded(condition: Expression) -> Expression:
    """Return a condition that never uses a value that does not fit, and is true where this one would.

    >>> total = Binary(Type.BIGINT, "+", Column(Type.BIGINT, "a"), Column(Type.BIGINT, "b"))
    >>> print(guarded(Binary(Type.BOOLEAN, "<", total, Literal(Type.BIGINT, 9))))
    (((a + b) < 9) OR OVERFLOWS(((a + b) < 9)))
    """
    if not _may_overflow(condition):
        return condition
    return Binary(Type.BOOLEAN, "OR", condition, Call(Type.BOOLEAN, OVERFLOWS, (condition,)))


def _may_overflow(expression: Expression) -> bool:
    match expression:
        case Call(function=name) if name == OVERFLOWS:
            return False
        case Binary(op="OR", left=left, right=Call(function=name, arguments=(same,))) if name == OVERFLOWS:
            return same != left
    own = can_overflow(expression) and bool(expression.columns())
    return own or any(map(_may_overflow, expression.children()))


def _physical(value: int | datetime | timedelta | date) -> int:
    """Return a literal as pages represent it."""
    if isinstance(value, int):
        return value
    if isinstance(value, datetime | timedelta):
        return micros(value)
    return value.toordinal() - EPOCH_DAY
