"""Type coercion: the common type of two types, and casts where they differ.

A literal is converted instead of cast, so that plans stay readable and pushed predicates simple.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from millstream.algebra.expression import Cast, Expression, Literal
from millstream.algebra.types import Type, parse_value
from millstream.errors import BindError

_RANK = {Type.INT: 0, Type.BIGINT: 1, Type.REAL: 2, Type.DOUBLE: 3, Type.DECIMAL: 3}
INSTANTS = (Type.TIMESTAMP, Type.DATE)
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def common(left: Type, right: Type) -> Type | None:
    """Return the type in which values of both can be compared and mixed, or None.

    >>> common(Type.INT, Type.BIGINT), common(Type.BIGINT, Type.REAL), common(Type.INT, Type.VARCHAR)
    (<Type.BIGINT: 'BIGINT'>, <Type.DOUBLE: 'DOUBLE'>, None)
    """
    if left is right or right is Type.NULL:
        return left
    if left is Type.NULL:
        return right
    if left.is_numeric and right.is_numeric:
        if Type.REAL in (left, right):
            return Type.DOUBLE  # an integer does not fit into a REAL
        return left if _RANK[left] >= _RANK[right] else right
    if {left, right} == {Type.DATE, Type.TIMESTAMP}:
        return Type.TIMESTAMP
    return None


def cast(expression: Expression, wanted: Type) -> Expression:
    """Return the expression as the wanted type; a literal is converted at once where that loses nothing."""
    if expression.type is wanted:
        return expression
    literal = _converted(expression.value, expression.type, wanted) if isinstance(expression, Literal) else None
    return Cast(wanted, expression) if literal is None else literal


_CASTABLE = {
    Type.BOOLEAN: {Type.VARCHAR, Type.INT, Type.BIGINT},
    Type.TIMESTAMP: {Type.VARCHAR, Type.DATE, Type.INT, Type.BIGINT, Type.DOUBLE},
    Type.DATE: {Type.VARCHAR, Type.TIMESTAMP},
    Type.INTERVAL: {Type.VARCHAR, Type.INT, Type.BIGINT, Type.DOUBLE},
}


def castable(given: Type, wanted: Type) -> bool:
    """True if CAST converts values of the type."""
    numeric_target = wanted.is_numeric or wanted in (Type.VARCHAR, Type.TIMESTAMP, Type.INTERVAL, Type.BOOLEAN)
    return (
        given in (wanted, Type.NULL, Type.VARCHAR)
        or (given.is_numeric and numeric_target)
        or (given.is_array and wanted is Type.VARCHAR)
        or wanted in _CASTABLE.get(given, ())
    )


def cast_text(written: str, given: Type, wanted: Type) -> str:
    """The CAST to write in a statement, for a hint, with what it loses; empty if it is not possible.

    >>> cast_text("k", Type.VARCHAR, Type.BIGINT), cast_text("x", Type.INT, Type.DOUBLE)
    ('CAST(k AS BIGINT), NULL for a text that is not a number', 'CAST(x AS DOUBLE)')
    """
    if not castable(given, wanted):
        return ""
    lost = loss(given, wanted)
    return f"CAST({written} AS {wanted.value})" + (f", {lost}" if lost else "")


def loss(given: Type, wanted: Type) -> str:
    """What CAST loses; empty if it loses nothing."""
    if given is Type.VARCHAR and wanted is not Type.VARCHAR:
        what = "a number" if wanted.is_numeric else f"{'an' if wanted is Type.INTERVAL else 'a'} {wanted.value}"
        return f"NULL for a text that is not {what}"
    if given.is_numeric and not given.is_integer and wanted.is_integer:
        return "which drops the fraction"
    return "NULL for a number that does not fit" if given is Type.BIGINT and wanted is Type.INT else ""


def cast_hint(value: Expression, wanted: Type, written: str = "") -> str:
    """How to write a value so that it has another type. `written`: how the statement writes it, if that is known."""
    if isinstance(value, Literal) and value.type is Type.VARCHAR and wanted.is_numeric:
        return "write a number without quotes"
    return cast_text(written or str(value), value.type, wanted)


def _converted(value: Any, given: Type, wanted: Type) -> Literal | None:
    """Return a literal of another type with the same value; None if that would lose something."""
    if value is None:
        return Literal(wanted, None)
    if given.is_integer and wanted.is_integer:
        return Literal(wanted, value) if wanted is Type.BIGINT or _LEAST <= value <= _MOST else None
    if given.is_numeric and wanted in (Type.DOUBLE, Type.DECIMAL):
        return Literal(wanted, float(value))
    if given is Type.DATE and wanted is Type.TIMESTAMP:
        return Literal(wanted, datetime(value.year, value.month, value.day))
    return None


def read_literal(text: str, wanted: Type) -> Literal:
    """Return a string as a literal of a type that is written as a string."""
    try:
        return Literal(wanted, parse_value(text, wanted))
    except (ValueError, OverflowError):
        form = {Type.TIMESTAMP: "YYYY-MM-DD HH:MM:SS", Type.DATE: "YYYY-MM-DD"}.get(wanted, "")
        hint = f"write it as {form}" if form else ""
        raise BindError("M2004", f"'{text}' is not a {wanted.value}", hint=hint) from None


def read_as(expression: Expression, other: Type) -> Expression:
    """Return a string literal next to a timestamp or a date as one; any other expression is unchanged."""
    if isinstance(expression, Literal) and expression.type is Type.VARCHAR and other in INSTANTS:
        return read_literal(str(expression.value), other)
    return expression


def literal_type(value: bool | int | float | str | date | timedelta | None) -> Type:
    """Return the type of a constant; an integer is an INT if it fits."""
    match value:
        case None:
            return Type.NULL
        case bool():
            return Type.BOOLEAN
        case int():
            return Type.INT if _LEAST <= value <= _MOST else Type.BIGINT
        case float():
            return Type.DOUBLE
    return Type.VARCHAR


def unify(expressions: list[Expression], what: str) -> tuple[Type, list[Expression]]:
    """Return the expressions in one common type, for the branches of a CASE or the arguments of COALESCE.

    A string literal among timestamps or dates is read as one of them.
    """
    wanted = Type.NULL
    for expression in expressions:
        if not _is_text(expression):
            wanted = _mixed(wanted, expression.type, what)
    if wanted not in INSTANTS:
        for expression in expressions:
            wanted = _mixed(wanted, expression.type, what)
    return wanted, [cast(read_as(expression, wanted), wanted) for expression in expressions]


def _is_text(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.type is Type.VARCHAR


def _mixed(left: Type, right: Type, what: str) -> Type:
    found = common(left, right)
    if found is None:
        ways = (cast_text("x", right, left), cast_text("x", left, right))
        hint = next((f"CAST one of them: {way}" for way in ways if way), "")
        raise BindError("M2005", f"{what} mixes {left.value} and {right.value}", hint=hint)
    return found
