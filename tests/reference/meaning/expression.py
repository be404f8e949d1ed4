"""The value of an expression for one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, InList, Literal, Unary
from millstream.algebra.schema import TS
from millstream.algebra.types import Type
from tests.reference.meaning.relation import Row


def value(expression: Expression, row: Row, ts: int) -> Any:
    match expression:
        case Column(name=name):
            return ts if name == TS else row[name]
        case Literal(value=made):
            return made
        case Cast(type=type_, operand=operand):
            return cast(value(operand, row, ts), type_)
        case Unary(op=op, operand=operand):
            return unary(op, value(operand, row, ts))
        case Binary(op=op, left=left, right=right):
            return binary(op, value(left, row, ts), value(right, row, ts))
        case InList(operand=operand, options=options):
            mine, others = value(operand, row, ts), [value(option, row, ts) for option in options]
            if mine is None:
                return None
            return True if mine in others else None if None in others else False
        case Case(branches=branches, otherwise=otherwise):
            for condition, made in branches:
                if value(condition, row, ts) is True:
                    return value(made, row, ts)
            return None if otherwise is None else value(otherwise, row, ts)
        case Call(function="OVERFLOWS"):
            return False  # the values of these plans are small
        case Call(function=function, arguments=arguments):
            return call(function, [value(argument, row, ts) for argument in arguments])
    raise AssertionError(expression)


def cast(made: Any, type_: Type) -> Any:
    if made is None:
        return None
    return {Type.DOUBLE: float, Type.BIGINT: int, Type.INT: int, Type.VARCHAR: str}[type_](made)


def unary(op: str, made: Any) -> Any:
    if op in ("IS NULL", "IS NOT NULL"):
        return (made is None) == (op == "IS NULL")
    if made is None:
        return None
    return -made if op == "-" else not made


def binary(op: str, left: Any, right: Any) -> Any:
    if op == "AND":
        return False if left is False or right is False else None if None in (left, right) else True
    if op == "OR":
        return True if left is True or right is True else None if None in (left, right) else False
    if left is None or right is None:
        return None
    operations: dict[str, Callable[[], Any]] = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "||": lambda: left + right,
        "=": lambda: left == right,
        "<>": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return operations[op]()


def call(function: str, arguments: list[Any]) -> Any:
    if function == "COALESCE":
        return next((argument for argument in arguments if argument is not None), None)
    assert function == "ABS", function
    return None if arguments[0] is None else abs(arguments[0])
