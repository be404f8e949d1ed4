"""Operators: which types they take, and what comes out.

`/` always gives a DOUBLE, as in Spark's SQL, so that no fraction is lost silently; `%` of integers is an integer, and
`+ - *` of integers a BIGINT, so that none overflows before it must.
TIMESTAMP ± INTERVAL is a TIMESTAMP, the difference of two timestamps an INTERVAL. With BIGINT time, whose unit is a
second, an INTERVAL literal beside an integer counts its seconds.
"""

from __future__ import annotations

from datetime import timedelta

from millstream.algebra.expression import Binary, Expression, Literal, Unary
from millstream.algebra.types import Type
from millstream.errors import BindError
from millstream.logical.bind.coercion import cast, common, read_literal

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_INSTANTS = (Type.TIMESTAMP, Type.DATE)


def binary(op: str, left: Expression, right: Expression) -> Expression:
    """The operator over typed operands, with casts where types differ."""
    if op in ("AND", "OR"):
        return Binary(Type.BOOLEAN, op, boolean(left, op), boolean(right, op))
    if op in COMPARISONS:
        return _comparison(op, left, right)
    if op == "LIKE":
        for side in (left, right):
            if side.type not in (Type.VARCHAR, Type.NULL):
                raise _mismatch(op, left, right, "LIKE compares VARCHAR with VARCHAR.")
        return Binary(Type.BOOLEAN, op, cast(left, Type.VARCHAR), cast(right, Type.VARCHAR))
    if op == "||":
        return Binary(Type.VARCHAR, op, cast(left, Type.VARCHAR), cast(right, Type.VARCHAR))
    return _arithmetic(op, left, right)


def unary(op: str, operand: Expression) -> Expression:
    if op == "NOT":
        return Unary(Type.BOOLEAN, op, boolean(operand, op))
    if op == "-":
        if not (operand.type.is_numeric or operand.type in (Type.INTERVAL, Type.NULL)):
            raise BindError("M2006", f"'-' needs a number, not {operand.type.value}")
        return Unary(operand.type, op, operand)
    return Unary(Type.BOOLEAN, op, operand)


def boolean(expression: Expression, where: str) -> Expression:
    """The expression, if it is a condition."""
    if expression.type not in (Type.BOOLEAN, Type.NULL):
        hint = f"compare it: {expression} <> 0" if expression.type.is_numeric else ""
        raise BindError("M2006", f"{where} needs a condition, not {expression.type.value}", hint=hint)
    return cast(expression, Type.BOOLEAN)


def _mismatch(op: str, left: Expression, right: Expression, hint: str = "") -> BindError:
    return BindError("M2006", f"'{op}' does not take {left.type.value} and {right.type.value}", hint=hint)


def _comparison(op: str, left: Expression, right: Expression) -> Expression:
    left, right = _read_as(left, right.type), _read_as(right, left.type)
    wanted = common(left.type, right.type)
    if wanted is None:
        raise _mismatch(op, left, right, _comparison_hint(left, right))
    return Binary(Type.BOOLEAN, op, cast(left, wanted), cast(right, wanted))


def _read_as(expression: Expression, other: Type) -> Expression:
    """A string literal beside a timestamp or a date is one."""
    if isinstance(expression, Literal) and expression.type is Type.VARCHAR and other in _INSTANTS:
        return read_literal(str(expression.value), other)
    return expression


def _comparison_hint(left: Expression, right: Expression) -> str:
    types = {left.type, right.type}
    if Type.VARCHAR in types:
        text, other = (left, right) if left.type is Type.VARCHAR else (right, left)
        if isinstance(text, Literal):
            return "write a number without quotes" if other.type.is_numeric else ""
        return f"CAST({text} AS {other.type.value})"
    if Type.TIMESTAMP in types:
        return "write the value as TIMESTAMP 'YYYY-MM-DD HH:MM:SS'"
    if Type.BOOLEAN in types:
        return "a BOOLEAN compares with TRUE, FALSE and other conditions"
    return ""


def _arithmetic(op: str, left: Expression, right: Expression) -> Expression:
    left, right = _seconds(op, left, right.type), _seconds(op, right, left.type)
    if (left.type.is_numeric and right.type.is_numeric) or Type.NULL in (left.type, right.type):
        return _numeric(op, left, right)
    made = _temporal(op, left.type, right.type)
    if made is None:
        hint = "add a duration: INTERVAL '5' SECOND" if _number_beside_instant(left.type, right.type) else ""
        if Type.VARCHAR in (left.type, right.type):
            hint = "|| puts texts together" if op == "+" else "CAST(x AS DOUBLE)"
        raise _mismatch(op, left, right, hint)
    if Type.INTERVAL in (left.type, right.type) or op == "-":
        left, right = (cast(side, Type.TIMESTAMP) if _promoted(side, made) else side for side in (left, right))
    return Binary(made, op, left, right)


def _promoted(side: Expression, made: Type) -> bool:
    return side.type is Type.DATE and made is not Type.DATE


def _number_beside_instant(left: Type, right: Type) -> bool:
    return (left in _INSTANTS and right.is_numeric) or (right in _INSTANTS and left.is_numeric)


def _seconds(op: str, expression: Expression, other: Type) -> Expression:
    """An INTERVAL literal added to an integer: its seconds."""
    if not (isinstance(expression, Literal) and isinstance(expression.value, timedelta)):
        return expression
    if not other.is_integer or op not in ("+", "-"):
        return expression
    seconds, rest = divmod(expression.value, timedelta(seconds=1))
    if rest:
        hint = "A BIGINT timestamp counts seconds."
        raise BindError("M2007", f"{expression} is not a whole number of seconds", hint=hint)
    return Literal(Type.BIGINT, seconds)


def _numeric(op: str, left: Expression, right: Expression) -> Expression:
    wanted = common(left.type, right.type)
    if wanted is None:  # pragma: no cover - numbers and NULL always have a common type
        raise _mismatch(op, left, right)
    if wanted is Type.NULL:
        wanted = Type.INT
    if not wanted.is_numeric:
        # NULL beside a timestamp or an interval: NULL, of the type that a value would have given
        result = _temporal(op, left.type, right.type) or wanted
        return Literal(result, None)
    if op == "/":
        wanted = Type.DOUBLE
    elif wanted is Type.INT and op != "%":
        wanted = Type.BIGINT  # a product of two INTs need not fit into one
    return Binary(wanted, op, cast(left, wanted), cast(right, wanted))


def _temporal(op: str, left: Type, right: Type) -> Type | None:
    """The type of an operation on time, or None if there is none."""
    interval, timestamp, day = Type.INTERVAL, Type.TIMESTAMP, Type.DATE
    match op:
        case "+" | "-" if left in _INSTANTS and right is interval:
            return timestamp
        case "+" if left is interval and right in _INSTANTS:
            return timestamp
        case "-" if left in _INSTANTS and right in _INSTANTS:
            return interval
        case "+" | "-" if left is interval and right is interval:
            return interval
        case "+" | "-" if left is day and right.is_integer:
            return day
        case "*" | "/" if left is interval and right.is_numeric:
            return interval
        case "*" if left.is_numeric and right is interval:
            return interval
        case "/" if left is interval and right is interval:
            return Type.DOUBLE
    return None
