"""Bound expressions as Polars expressions over a page.

| part | meaning |
|---|---|
| computes | `to_polars` returns an expression that computes a whole column at once, with the semantics of SQL |
| NULL | three-valued logic; every operator but AND, OR, IS [NOT] NULL and CASE returns NULL for NULL |
| `/` | always a DOUBLE (an INTERVAL, if one is divided by a number); by zero: NULL |
| `%` | has the sign of the dividend; by zero: NULL |
| overflow | a wrapped number or NULL, which nothing may read: `checks` raises first (`overflow`) |
| LIKE | `%` any text, `_` any one character; a backslash is a character like others |
| time | TIMESTAMP ± INTERVAL, TIMESTAMP - TIMESTAMP, DATE ± days; `__ts` as a TIMESTAMP is the hidden timestamp |
| cost | one pass over the columns it reads; it has no state |

>>> from millstream.algebra.expression import Binary, Column, Literal
>>> half = Binary(Type.DOUBLE, "/", Column(Type.BIGINT, "x"), Literal(Type.BIGINT, 2))
>>> pl.DataFrame({"x": [1, None, 4]}).select(to_polars(half)).to_series().to_list()
[0.5, None, 2.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import add, eq, ge, gt, le, lt, mul, ne, sub

import polars as pl

from millstream.algebra.expression import (
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    InList,
    Literal,
    Unary,
)
from millstream.algebra.program.expression import Applied
from millstream.algebra.ranges import LIMITS, OVERFLOWS
from millstream.algebra.schema import TS
from millstream.algebra.types import Type
from millstream.errors import BindError
from millstream.runtime.expression.casting import convert
from millstream.runtime.expression.exact import quotient
from millstream.runtime.expression.functions import call, remainder
from millstream.runtime.expression.overflow import row_overflows

_COMPARISONS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARITHMETIC: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {"+": add, "-": sub, "*": mul}
_TEMPORAL = (Type.TIMESTAMP, Type.DATE, Type.INTERVAL)


def to_polars(expression: Expression) -> pl.Expr:
    """Return the Polars expression that computes this one over the columns of a page."""
    translated = _translate(expression)
    if isinstance(expression, Literal) or expression.columns():
        return translated
    # A constant is computed once, not once a page; and Polars does not extend every constant to the page's length.
    return pl.lit(pl.select(translated).item(), dtype=expression.type.polars)


def _translate(expression: Expression) -> pl.Expr:
    match expression:
        case Column(type=type_, name=name):
            hidden = name == TS and type_ is Type.TIMESTAMP
            return pl.col(TS).cast(pl.Datetime("us")) if hidden else pl.col(name)
        case Literal(type=type_, value=value):
            return pl.lit(value, dtype=type_.polars)
        case Binary():
            return _binary(expression)
        case Unary(op=op, operand=operand):
            return _unary(op, operand)
        case InList(operand=operand, options=options):
            return _in_list(operand, options)
        case Case(type=type_, branches=branches, otherwise=otherwise):
            chain: pl.Expr = pl.lit(None, dtype=type_.polars) if otherwise is None else _as(otherwise, type_)
            for condition, value in reversed(branches):
                chain = pl.when(_as(condition, Type.BOOLEAN)).then(_as(value, type_)).otherwise(chain)
            return chain
        case Cast(type=type_, operand=operand):
            return _as(operand, type_)
        case Call(function=name, arguments=(condition, *items)) if name == OVERFLOWS:
            fails = row_overflows(condition, items, to_polars)
            return pl.lit(False) if fails is None else fails
        case Call():
            return call(expression, to_polars)
        case Applied():
            return _applied(expression)
    raise BindError("M2062", f"cannot evaluate '{expression}'")


def _applied(node: Applied) -> pl.Expr:
    from millstream.runtime.program.grouped import applied  # programs are compiled with the help of this module

    lists = pl.struct(to_polars(argument).alias(f"a{n}") for n, argument in enumerate(node.arguments))
    return lists.map_batches(applied(node), node.type.polars, is_elementwise=True)


def predicate(expression: Expression) -> pl.Expr:
    """Return a condition for `filter`, which takes NULL as false."""
    return _as(expression, Type.BOOLEAN)


def _as(expression: Expression, type_: Type) -> pl.Expr:
    return convert(to_polars(expression), expression.type, type_)


def _binary(node: Binary) -> pl.Expr:
    op, left, right = node.op, node.left, node.right
    if op in ("AND", "OR"):
        both = _as(left, Type.BOOLEAN), _as(right, Type.BOOLEAN)
        return both[0] & both[1] if op == "AND" else both[0] | both[1]
    if op in _COMPARISONS:
        return _compare(op, left, right)
    if op == "||":
        return pl.concat_str(_as(left, Type.VARCHAR), _as(right, Type.VARCHAR))
    if op == "LIKE":
        return _like(_as(left, Type.VARCHAR), right)
    if left.type in _TEMPORAL or right.type in _TEMPORAL:
        return _temporal(node)
    if op == "/":
        return _divide(_as(left, Type.DOUBLE), right)
    operands = _as(left, node.type), _as(right, node.type)
    if op == "%":
        return remainder(*operands, node.type)
    value = _ARITHMETIC[op](*operands)
    if op != "*" and node.type.is_float and (_is_zero(left) or (op == "+" and _is_zero(right))):
        # Polars leaves a column as it is when it adds 0, and negates what it subtracts from 0: -0.0 would come.
        return pl.when(value == 0).then(pl.lit(0, dtype=node.type.polars)).otherwise(value)
    return value


def _is_zero(expression: Expression) -> bool:
    """Return whether an expression is the constant 0, and not -0.0."""
    value = None if expression.columns() else pl.select(to_polars(expression)).item()
    return value == 0 and math.copysign(1, value) == 1


def _compare(op: str, left: Expression, right: Expression) -> pl.Expr:
    if not left.columns() and right.columns():
        # Polars returns a single value for a constant compared with a column that is all null.
        op, left, right = _MIRRORED.get(op, op), right, left
    common = _comparable(left.type, right.type)
    if common is None:
        return _COMPARISONS[op](to_polars(left), to_polars(right))
    return _COMPARISONS[op](_as(left, common), _as(right, common))


def _comparable(left: Type, right: Type) -> Type | None:
    """Return the type in which two values are compared; None if Polars compares them without a cast."""
    if left is right or (left.is_numeric and right.is_numeric):
        return None
    if Type.NULL in (left, right):
        return right if left is Type.NULL else left
    if {left, right} == {Type.DATE, Type.TIMESTAMP}:
        return Type.TIMESTAMP
    return right if left is Type.VARCHAR else left


def _divide(value: pl.Expr, divisor: Expression) -> pl.Expr:
    by = _as(divisor, Type.DOUBLE)
    made = value / by if divisor.columns() else quotient(value, by)
    return made if isinstance(divisor, Literal) and divisor.value else pl.when(by != 0).then(made)


def _temporal(node: Binary) -> pl.Expr:
    op, left, right = node.op, node.left, node.right
    if op in ("*", "/"):
        if left.type is Type.INTERVAL and right.type is Type.INTERVAL:
            micros = _as(right, Type.INTERVAL).cast(pl.Int64)
            return pl.when(micros != 0).then(quotient(to_polars(left).cast(pl.Int64), micros)).cast(node.type.polars)
        if left.type is Type.INTERVAL:
            micros = to_polars(left).cast(pl.Int64).cast(pl.Float64)
            scaled = _divide(micros, right) if op == "/" else micros * _as(right, Type.DOUBLE)
        else:
            scaled = _as(left, Type.DOUBLE) * to_polars(right).cast(pl.Int64)
        return scaled.round(0).cast(pl.Int64, strict=False).cast(pl.Duration("us"))
    if Type.DATE in (left.type, right.type) and (left.type.is_integer or right.type.is_integer):
        days = (to_polars(side).to_physical().cast(pl.Int64) for side in (left, right))
        return _within(_ARITHMETIC[op](*days), Type.DATE)
    value = _ARITHMETIC[op](_instant(left), _instant(right))
    if left.type is Type.DATE and right.type is Type.DATE and node.type.is_integer:
        return value.dt.total_days().cast(node.type.polars)
    if (left.type is Type.INTERVAL) == (right.type is Type.INTERVAL):
        return convert(value, Type.INTERVAL, node.type)
    return convert(_within(value.to_physical(), Type.TIMESTAMP), Type.TIMESTAMP, node.type)


def _within(number: pl.Expr, type_: Type) -> pl.Expr:
    """Return a number of microseconds or days as a time; NULL out of range, where Polars cannot compute with it."""
    return pl.when(number.is_between(*LIMITS[type_])).then(number).cast(type_.polars)


def _instant(expression: Expression) -> pl.Expr:
    """Return a DATE as its midnight and a NULL as an interval."""
    wanted = {Type.DATE: Type.TIMESTAMP, Type.NULL: Type.INTERVAL}.get(expression.type, expression.type)
    return _as(expression, wanted)


def _unary(op: str, operand: Expression) -> pl.Expr:
    value = to_polars(operand)
    match op:
        case "NOT":
            return ~_as(operand, Type.BOOLEAN)
        case "-":
            return -value
        case "IS NULL":
            return value.is_null()
        case "IS NOT NULL":
            return value.is_not_null()
    raise BindError("M2062", f"cannot evaluate the operator '{op}'")


def _in_list(operand: Expression, options: tuple[Expression, ...]) -> pl.Expr:
    values = [option.value for option in options if isinstance(option, Literal)]
    alike = all(option.type in (operand.type, Type.NULL) for option in options)
    if len(values) == len(options) and alike and operand.type is not Type.NULL:
        found = to_polars(operand).is_in([value for value in values if value is not None])
        # A NULL among the options makes "not found" unknown.
        return found if None not in values else found | pl.lit(None, dtype=pl.Boolean)
    chain = _compare("=", operand, options[0])
    for option in options[1:]:
        chain = chain | _compare("=", operand, option)
    return chain


def _like(text: pl.Expr, pattern: Expression) -> pl.Expr:
    if not isinstance(pattern, Literal):
        patterns = _as(pattern, Type.VARCHAR)
        # The condition extends a constant text to the length of the column of patterns.
        return pl.when(patterns.is_not_null()).then(text).str.contains(_regex(patterns))
    if pattern.value is None:
        return pl.lit(None, dtype=pl.Boolean)
    written = str(pattern.value)
    inner = written.strip("%")
    if not set(inner) & set("%_"):
        # The common shapes need no regular expression.
        starts, ends = not written.startswith("%"), not written.endswith("%")
        if starts and ends:
            return text == inner
        if starts or ends:
            return text.str.starts_with(inner) if starts else text.str.ends_with(inner)
        return text.str.contains(inner, literal=True)
    return text.str.contains(pl.select(_regex(pl.lit(written))).item())


def _regex(pattern: pl.Expr) -> pl.Expr:
    """Return the regular expressions of LIKE patterns."""
    pattern = pattern.str.replace_all(r"[\\.+*?()|\[\]{}^$#&\-~]", r"\${0}")
    for written, meant in {"%": ".*", "_": "."}.items():
        pattern = pattern.str.replace_all(written, meant, literal=True)
    return pl.concat_str(pl.lit("(?s)^"), pattern, pl.lit("$"))
