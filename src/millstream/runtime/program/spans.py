"""Bounds of the finite values of DOUBLE expressions; infinities and NaN may be there too.

>>> from millstream.algebra.expression import Column
>>> span(Call(Type.DOUBLE, "LN", (Column(Type.DOUBLE, "x"),)), None)
(-746.0, 710.0)
"""

from __future__ import annotations

from math import inf
from typing import Protocol

from millstream.algebra.expression import Binary, Call, Cast, Expression
from millstream.algebra.types import Type
from millstream.runtime.program.forms import constant

Span = tuple[float, float]
_WHOLE = (Type.INT, Type.BIGINT)


class Known(Protocol):
    """The bounds of an integer."""

    @property
    def low(self) -> int: ...

    @property
    def high(self) -> int: ...


class Knows(Protocol):
    """What is known of integers."""

    def of(self, node: Expression) -> Known: ...


def span(node: Expression, facts: Knows | None) -> Span:
    if (literal := constant(node)) is not None:
        return (float(literal.value), float(literal.value)) if isinstance(literal.value, int | float) else (-inf, inf)
    match node:
        case Call(function="LN"):
            return -746.0, 710.0
        case Call(function="SIGN"):
            return -1.0, 1.0
        case Call(function="ABS", arguments=(operand,)):
            low, high = span(operand, facts)
            return 0.0, max(-low, high)
        case Call(function="CEIL" | "FLOOR", arguments=(operand,)):
            low, high = span(operand, facts)
            return low - 1, high + 1
        case Cast(operand=operand) if operand.type in _WHOLE and facts is not None:
            known = facts.of(operand)
            return float(known.low), float(known.high)
        case Binary(op="/", left=left, right=right):
            divisor = constant(right)
            if divisor is not None and isinstance(divisor.value, int | float) and divisor.value:
                ends = [each / divisor.value for each in span(left, facts)]
                return min(ends), max(ends)
    return -inf, inf
