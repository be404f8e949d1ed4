"""Operators whose results may not fit their types, and conditions that hold where they do not.

A join pushes a condition on one side down to that side. A tuple that finds no partner uses no value of the condition,
so a condition that may overflow is pushed in a form that never does, and the join tests the condition itself on pairs.
"""

from __future__ import annotations

from millstream.algebra.expression import Binary, Call, Expression, Literal, Unary
from millstream.algebra.types import Type

OVERFLOWS = "OVERFLOWS"
"""The function of a condition and items that is true if a row uses a value that does not fit."""
RANGED = (Type.INT, Type.BIGINT, Type.INTERVAL, Type.TIMESTAMP, Type.DATE)
"""The types whose values have a range that is checked."""


def can_overflow(node: Expression) -> bool:
    """True if the operator itself, not its operands, may have a result that does not fit."""
    match node:
        case Binary(type=type_, op="+" | "-" | "*"):
            return type_ in RANGED
        case Binary(type=Type.INTERVAL, op="/"):
            return True
        case Unary(type=type_, op="-") | Call(type=type_, function="ABS"):
            return type_ in RANGED
        case Call(type=type_, function="ROUND", arguments=(_, digits)):
            raises = not (isinstance(digits, Literal) and (digits.value is None or digits.value >= 0))
            return type_ in RANGED and raises
    return False


def guarded(condition: Expression) -> Expression:
    """Return a condition that never uses a value that does not fit, and is true where this one would.

    >>> from millstream.algebra.expression import Column
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
