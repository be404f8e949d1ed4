"""Operators: the types they accept, and the types of their results.

`/` always returns a DOUBLE, as in Spark's SQL, so that no fraction is lost silently. `%` of integers is an integer, and
`+ - *` of integers a BIGINT, which overflows later than an INT. TIMESTAMP ± INTERVAL is a TIMESTAMP, the difference of
two timestamps an INTERVAL. With BIGINT time, whose unit is a second, an INTERVAL literal next to an integer is its
number of seconds.
"""

from __future__ import annotations

import re
from datetime import timedelta

from millstream.algebra.expression import Binary, Cast, Expression, Literal, Unary
from millstream.algebra.types import Type
from millstream.errors import BindError
from millstream.logical.bind.coercion import INSTANTS, cast, cast_hint, common, read_as

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def binary(op: str, left: Expression, right: Expression) -> Expression:
    """Return the operator over typed operands, with casts where types differ."""
    if op in ("AND", "OR"):
        return Binary(Type.BOOLEAN, op, boolean(left, op), boolean(right, op))
    if op in COMPARISONS:
        return _comparison(op, left, right)
    if op == "LIKE":
        if not {left.type, right.type} <= {Type.VARCHAR, Type.NULL}:
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
        if operand.type is Type.NULL:
            operand = cast(operand, Type.INT)  # as for an operator over two NULLs
        return operand if isinstance(operand, Literal) and operand.value is None else Unary(operand.type, op, operand)
    return Unary(Type.BOOLEAN, op, operand)


def boolean(expression: Expression, where: str) -> Expression:
    """Return the expression if it is a condition; raise BindError if not."""
    if expression.type not in (Type.BOOLEAN, Type.NULL):
        hint = f"compare it: {expression} <> 0" if expression.type.is_numeric else ""
        raise BindError("M2006", f"{where} needs a condition, not {expression.type.value}", hint=hint)
    return cast(expression, Type.BOOLEAN)


def _mismatch(op: str, left: Expression, right: Expression, hint: str = "") -> BindError:
    return BindError("M2006", f"'{op}' does not take {left.type.value} and {right.type.value}", hint=hint)


def _comparison(op: str, left: Expression, right: Expression) -> Expression:
    left, right = read_as(left, right.type), read_as(right, left.type)
    wanted = common(left.type, right.type)
    if wanted is None or wanted.is_array:
        raise _mismatch(op, left, right, _comparison_hint(left, right))
    return Binary(Type.BOOLEAN, op, cast(left, wanted), cast(right, wanted))


def _comparison_hint(left: Expression, right: Expression) -> str:
    types = {left.type, right.type}
    if left.type.is_array or right.type.is_array:
        return "arrays are not compared; compare their texts: CAST(x AS VARCHAR)"
    joined = next((side for side in (left, right) if isinstance(side, Binary) and side.op == "||"), None)
    if joined is not None and any(isinstance(side, Cast) for side in (joined.left, joined.right)):
        return "|| puts texts together; write OR between conditions"
    if Type.VARCHAR in types:
        text, other = (left, right) if left.type is Type.VARCHAR else (right, left)
        if isinstance(text, Literal) and not other.type.is_numeric:
            return ""
        return cast_hint(text, other.type)
    if types & {*INSTANTS}:
        return _instant_hint(*((left, right) if left.type in INSTANTS else (right, left)))
    if Type.BOOLEAN in types:
        return "a BOOLEAN compares with TRUE, FALSE and other conditions"
    return ""


def _instant_hint(instant: Expression, other: Expression) -> str:
    if isinstance(other, Literal) or not other.type.is_numeric:
        return f"write the value as {instant.type.value} 'YYYY-MM-DD{' HH:MM:SS' * (instant.type is Type.TIMESTAMP)}'"
    if written := _DAY.fullmatch(str(other).replace(".0", "")):
        year, month, day = map(int, written.groups())
        return f"a date stands in quotes: {instant.type.value} '{year}-{month:02}-{day:02}'"
    seconds = f"if it has seconds since 1970, CAST({other} AS TIMESTAMP)"
    return f"{other} is {other.type.value}: compare it with a number, or {seconds}"


def _arithmetic(op: str, left: Expression, right: Expression) -> Expression:
    left, right = _seconds(op, left, right.type), _seconds(op, right, left.type)
    if left.type.is_array or right.type.is_array:
        raise _mismatch(op, left, right)
    if (left.type.is_numeric and right.type.is_numeric) or Type.NULL in (left.type, right.type):
        return _numeric(op, left, right)
    result = _temporal(op, left.type, right.type)
    if result is None:
        raise _mismatch(op, left, right, _arithmetic_hint(op, left, right))
    if result is not Type.DATE:
        left, right = (cast(side, Type.TIMESTAMP) if side.type is Type.DATE else side for side in (left, right))
    return Binary(result, op, left, right)


def _arithmetic_hint(op: str, left: Expression, right: Expression) -> str:
    types = {left.type, right.type}
    if Type.VARCHAR not in types:
        numeric = any(type_.is_numeric for type_ in types)
        return f"{_ADD.get(op, 'add')} a duration: {_EXAMPLE}" if numeric and types & {*INSTANTS} else ""
    text, other = (left, right) if left.type is Type.VARCHAR else (right, left)
    literal = text.value if isinstance(text, Literal) and isinstance(text.value, str) else ""
    if op in _ADD and (other.type in (*INSTANTS, Type.INTERVAL) or (other.type.is_integer and _duration(literal))):
        if op == "-" and _YEAR.match(literal):
            return "write a time as TIMESTAMP 'YYYY-MM-DD HH:MM:SS'"
        return f"{_ADD[op]} a duration: {_duration(literal) or _EXAMPLE}"
    if types == {Type.VARCHAR}:
        return "|| puts texts together" if op == "+" else cast_hint(left, Type.DOUBLE)
    if not other.type.is_numeric:
        return "|| puts texts together" if op == "+" else ""
    hint = cast_hint(text, Type.DOUBLE)
    return f"{hint}; || puts texts together" if op == "+" else hint


_ADD = {"+": "add", "-": "subtract"}
_EXAMPLE = "INTERVAL '5' SECOND"
_DAY = re.compile(r"\(\((\d{4}) [-/] ([1-9]|1[0-2])\) [-/] ([1-9]|[12]\d|3[01])\)")
"""A date without quotes, which is arithmetic."""
_YEAR = re.compile(r"\s*\d{4}-")
_DURATION = re.compile(r"\s*(\d+)\s*(second|minute|hour|day|week)s?\s*", re.IGNORECASE)


def _duration(text: str) -> str:
    """The INTERVAL that a text means; empty if it means none.

    >>> _duration("5 seconds"), _duration("five")
    ("INTERVAL '5' SECOND", '')
    """
    found = _DURATION.fullmatch(text)
    return "" if found is None else f"INTERVAL '{found[1]}' {found[2].upper()}"


def _seconds(op: str, expression: Expression, other: Type) -> Expression:
    """Return the seconds of an INTERVAL literal that is added to an integer; any other expression is unchanged."""
    added = other.is_integer and op in ("+", "-")
    if not (added and isinstance(expression, Literal) and isinstance(expression.value, timedelta)):
        return expression
    seconds, rest = divmod(expression.value, timedelta(seconds=1))
    if rest:
        hint = "A BIGINT timestamp counts seconds."
        raise BindError("M2007", f"{expression} is not a whole number of seconds", hint=hint)
    return Literal(Type.BIGINT, seconds)


def _numeric(op: str, left: Expression, right: Expression) -> Expression:
    wanted = common(left.type, right.type)
    assert wanted is not None  # numbers and NULL always have a common type
    if wanted is Type.NULL:
        wanted = Type.INT
    if not wanted.is_numeric:
        # NULL beside a timestamp or an interval has the type of the result for a value.
        return Literal(_temporal(op, left.type, right.type) or wanted, None)
    if op == "/":
        wanted = Type.DOUBLE
    elif wanted is Type.INT and op != "%":
        wanted = Type.BIGINT  # a product of two INTs may not fit into one
    return Binary(wanted, op, cast(left, wanted), cast(right, wanted))


def _temporal(op: str, left: Type, right: Type) -> Type | None:
    """Return the type of an operation on time; None if there is no such operation."""
    interval, timestamp, day = Type.INTERVAL, Type.TIMESTAMP, Type.DATE
    match op:
        case "+" | "-" if left in INSTANTS and right is interval:
            return timestamp
        case "+" if left is interval and right in INSTANTS:
            return timestamp
        case "-" if left in INSTANTS and right in INSTANTS:
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
