"""Expressions over one row at a time, straight from the meaning of SQL."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, InList, Literal, Unary
from millstream.algebra.schema import TS
from millstream.algebra.types import Type, format_value, micros, parse_value

EPOCH = datetime(1970, 1, 1)


def evaluate(e: Expression, row: Mapping[str, Any]) -> Any:
    match e:
        case Column(type=type_, name=name):
            value = row[name]
            return EPOCH + timedelta(microseconds=value) if name == TS and type_ is Type.TIMESTAMP else value
        case Literal(value=value):
            return value
        case Binary(op="AND", left=left, right=right):
            values = evaluate(left, row), evaluate(right, row)
            return False if False in values else None if None in values else True
        case Binary(op="OR", left=left, right=right):
            values = evaluate(left, row), evaluate(right, row)
            return True if True in values else None if None in values else False
        case Binary(op=op, left=left, right=right):
            a, b = evaluate(left, row), evaluate(right, row)
            return None if a is None or b is None else fitted(binary(op, a, b), e.type)
        case Unary(op="IS NULL", operand=operand):
            return evaluate(operand, row) is None
        case Unary(op="IS NOT NULL", operand=operand):
            return evaluate(operand, row) is not None
        case Unary(op=op, operand=operand):
            value = evaluate(operand, row)
            return None if value is None else (not value) if op == "NOT" else -value
        case InList(operand=operand, options=options):
            value = evaluate(operand, row)
            values = [evaluate(option, row) for option in options]
            if value is None:
                return None
            return True if value in [v for v in values if v is not None] else None if None in values else False
        case Case(branches=branches, otherwise=otherwise):
            for condition, result in branches:
                if evaluate(condition, row) is True:
                    return fitted(evaluate(result, row), e.type)
            return None if otherwise is None else fitted(evaluate(otherwise, row), e.type)
        case Cast(type=type_, operand=operand):
            return cast(evaluate(operand, row), type_)
        case Call(function=function, arguments=arguments):
            return fitted(function_value(function, [evaluate(a, row) for a in arguments]), e.type)
    raise AssertionError(e)


def fitted(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if type_.is_integer and isinstance(value, float):
        return math.trunc(value)
    return float(value) if type_ in (Type.DOUBLE, Type.REAL, Type.DECIMAL) else value


def instant(value: Any) -> Any:
    return datetime.combine(value, time()) if isinstance(value, date) and not isinstance(value, datetime) else value


def binary(op: str, a: Any, b: Any) -> Any:
    if op == "||":
        return cast(a, Type.VARCHAR) + cast(b, Type.VARCHAR)
    if op == "LIKE":
        return like(a, b)
    a, b = instant(a), instant(b)
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return None if not b else a / b
        case "%" if b and isinstance(a, int) and isinstance(b, int):
            return abs(a) % abs(b) * (-1 if a < 0 else 1)  # a float has too few digits
        case "%":
            return None if b == 0 else math.fmod(a, b)
        case "=":
            return a == b
        case "<>":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
    return a >= b


def like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == "%":
        return any(like(text[i:], rest) for i in range(len(text) + 1))
    return bool(text) and head in ("_", text[0]) and like(text[1:], rest)


def cast(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if type_ is Type.VARCHAR:
        return value if isinstance(value, str) else format_value(value)
    if isinstance(value, str):
        try:
            return parse_value(value, type_)
        except ValueError:
            return None
    if type_ is Type.TIMESTAMP:
        return instant(value) if isinstance(value, date) else EPOCH + timedelta(seconds=value)
    if type_ is Type.DATE:
        return value.date() if isinstance(value, datetime) else value
    if isinstance(value, datetime):
        return fitted(micros(value) // 1_000_000 if type_.is_integer else micros(value) / 1_000_000, type_)
    if type_ is Type.BOOLEAN:
        return bool(value)
    return fitted(int(value) if isinstance(value, bool) else value, type_)


def rank(value: Any) -> tuple[bool, Any]:
    return value != value, value


def function_value(name: str, values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    match name:
        case "COALESCE":
            return present[0] if present else None
        case "GREATEST":
            return max(present, default=None, key=rank)
        case "LEAST":
            return min(present, default=None, key=rank)
        case "IF":
            return values[1] if values[0] else values[2]
        case "NULLIF":
            return None if None not in values and values[0] == values[1] else values[0]
    if None in values:
        return None
    x = values[0]
    match name:
        case "ABS":
            return abs(x)
        case "ROUND":
            scale = 10.0 ** (values[1] if len(values) > 1 else 0)
            return math.copysign(math.floor(abs(x) * scale + 0.5) / scale, x)
        case "FLOOR":
            return math.floor(x)
        case "CEIL":
            return math.ceil(x)
        case "SQRT":
            return math.sqrt(x) if x >= 0 else None
        case "LN":
            return math.log(x) if x > 0 else None
        case "EXP":
            return math.exp(x)
        case "SIGN":
            return (x > 0) - (x < 0)
        case "POWER":
            try:
                return math.pow(x, values[1])
            except (ValueError, OverflowError):
                return None
        case "MOD":
            return binary("%", x, values[1])
        case "UPPER":
            return x.upper()
        case "LOWER":
            return x.lower()
        case "LENGTH":
            return len(x)
        case "TRIM":
            return x.strip(values[1] if len(values) > 1 else " ")
        case "CONCAT":
            return "".join(values)
        case "REPLACE":
            return x.replace(values[1], values[2]) if values[1] else x
        case "SUBSTRING":
            start = values[1] - 1 if values[1] > 0 else len(x) + values[1] if values[1] < 0 else 0
            end = start + max(values[2], 0) if len(values) > 2 else len(x)
            return x[max(start, 0) : max(end, 0)]
        case "EXTRACT":
            return extract(x, instant(values[1]))
    raise AssertionError(name)


def extract(field: str, value: datetime) -> Any:
    match field:
        case "EPOCH":
            return micros(value) / 1_000_000
        case "DOW":
            return value.isoweekday() % 7
        case "DOY":
            return value.timetuple().tm_yday
        case "QUARTER":
            return (value.month + 2) // 3
        case "WEEK":
            return value.isocalendar().week
        case "SECOND":
            return value.second + value.microsecond / 1_000_000
        case "MILLISECOND":
            return value.second * 1_000 + value.microsecond / 1_000
        case "MICROSECOND":
            return value.second * 1_000_000 + value.microsecond
    return getattr(value, field.lower())
