"""Which values of an expression are used, one row at a time, with Python's integers, which have no limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, Literal, Unary, conjuncts
from millstream.algebra.types import Type

BITS = {Type.INT: 31, Type.BIGINT: 63}


class Overflow(Exception):
    """A value that is used does not fit."""


def evaluate(e: Expression, row: Mapping[str, Any]) -> Any:
    """The value of the expression; raise Overflow if it uses a value that does not fit."""
    match e:
        case Column(name=name):
            return row[name]
        case Literal(value=value):
            return value
        case Binary(op="AND" | "OR" as op, left=left, right=right):
            decisive, values, failed = op == "OR", [], False
            for side in (left, right):
                try:
                    values.append(evaluate(side, row))
                except Overflow:
                    failed = True
            if decisive in values:
                return decisive
            if failed:
                raise Overflow
            return None if None in values else not decisive
        case Case(branches=branches, otherwise=otherwise):
            for condition, value in branches:
                if evaluate(condition, row):
                    return evaluate(value, row)
            return None if otherwise is None else evaluate(otherwise, row)
        case Call(function="COALESCE", arguments=arguments):
            for argument in arguments:
                if (found := evaluate(argument, row)) is not None:
                    return found
            return None
        case Unary(op="IS NULL", operand=operand):
            return evaluate(operand, row) is None
        case Cast(type=type_, operand=operand):
            value = evaluate(operand, row)
            return value if value is None or fits(value, type_) else None
    values = [evaluate(child, row) for child in e.children()]
    if isinstance(e, Call) and e.function == "GREATEST":
        return max((value for value in values if value is not None), default=None)
    if None in values:
        return None
    try:
        made = _made(e, *values)
    except OverflowError:  # of a date or a timedelta
        raise Overflow from None
    if made is not None and not fits(made, e.type):
        raise Overflow
    return made


def fits(value: Any, type_: Type) -> bool:
    if type_ is Type.INTERVAL:
        return -(1 << 63) <= value // timedelta(microseconds=1) < 1 << 63
    return type_ not in BITS or -(1 << BITS[type_]) <= value < 1 << BITS[type_]


def _made(e: Expression, *values: Any) -> Any:
    match e:
        case Unary(op="NOT"):
            return not values[0]
        case Unary(op="-"):
            return -values[0]
        case Call(function="ABS"):
            return abs(values[0])
        case Call(function="ROUND"):
            scale = 10 ** max(-values[1], 0)
            return (abs(values[0]) + scale // 2) // scale * scale * (1 if values[0] > 0 else -1)
    assert isinstance(e, Binary)
    a, b = values
    if e.type is Type.DATE:
        return a + timedelta(days=b) if e.op == "+" else a - timedelta(days=b)
    match e.op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "%":
            return None if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)
        case "<":
            return a < b
    assert e.op == "="
    return a == b


def row_fails(condition: Expression | None, items: list[Expression], row: Mapping[str, Any]) -> bool:
    """Whether a row uses a value that does not fit: in its condition, or in an item if the condition is true."""
    failed = False
    for test in conjuncts(condition):
        try:
            if not evaluate(test, row):
                return False  # the row is dropped, whatever the other conjuncts are
        except Overflow:
            failed = True
    if failed:
        return True
    try:
        for item in items:
            evaluate(item, row)
    except Overflow:
        return True
    return False
