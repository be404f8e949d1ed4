"""Bound scalar expressions: the binder builds them from SQL, and the runtime compiles them to Polars.

Names are resolved to columns of the input page, and every node has a type. `str()` returns stable SQL text, which
`EXPLAIN` prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import partial, reduce
from typing import Any, Self

from millstream.algebra.python.reference import Reference
from millstream.algebra.types import Type, format_value
from millstream.algebra.values import record


@dataclass(frozen=True, slots=True)
class Expression:
    type: Type

    def children(self) -> Iterator[Expression]:
        for field in fields(self):
            value = getattr(self, field.name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Expression):
                    yield item
                elif isinstance(item, tuple):
                    yield from (part for part in item if isinstance(part, Expression))

    def columns(self) -> set[str]:
        """Names of all input columns that the expression reads."""
        if isinstance(self, Column):
            return {self.name}
        return set().union(*(child.columns() for child in self.children()))


_NUMBER = re.compile(r"#\d+\.")
"""The number of an alias inside a program, which no statement names: `t#1.k`."""


@record("column")
class Column(Expression):
    name: str

    def __str__(self) -> str:
        return _NUMBER.sub(".", self.name)


@record("literal")
class Literal(Expression):
    value: Any

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if isinstance(self.value, timedelta):
            seconds = f"{self.value.total_seconds():f}".rstrip("0").rstrip(".")
            return f"INTERVAL '{seconds}' SECOND"
        text = format_value(self.value)
        return f"{self.type.value} '{text}'" if self.type in (Type.TIMESTAMP, Type.DATE, Type.INTERVAL) else text


@record("binary")
class Binary(Expression):
    """`op` is one of + - * / % || = <> < <= > >= AND OR LIKE."""

    op: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@record("unary")
class Unary(Expression):
    """`op` is one of NOT, -, IS NULL, IS NOT NULL."""

    op: str
    operand: Expression

    def __str__(self) -> str:
        return f"({self.operand} {self.op})" if self.op.startswith("IS") else f"({self.op} {self.operand})"


@record("in_list")
class InList(Expression):
    operand: Expression
    options: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"({self.operand} IN ({', '.join(map(str, self.options))}))"


@record("case")
class Case(Expression):
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None

    def __str__(self) -> str:
        arms = " ".join(f"WHEN {c} THEN {v}" for c, v in self.branches)
        return f"CASE {arms}{'' if self.otherwise is None else f' ELSE {self.otherwise}'} END"


@record("cast")
class Cast(Expression):
    operand: Expression

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type.value})"


@record("call")
class Call(Expression):
    """A scalar function by its upper-case name."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class CodeCall(Expression):
    """A call of user-defined code, which Polars does not compute; derived classes have `arguments`."""

    def with_arguments(self, arguments: tuple[Expression, ...]) -> Self:
        return replace(self, arguments=arguments)  # type: ignore[call-arg]


@record("python_call")
class PythonCall(CodeCall):
    """A scalar function written in Python."""

    function: Reference
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function.name}({', '.join(map(str, self.arguments))})"


def calls_code(expression: Expression) -> bool:
    """Return whether the expression calls user-defined code."""
    return isinstance(expression, CodeCall) or any(map(calls_code, expression.children()))


def conjuncts(predicate: Expression | None) -> tuple[Expression, ...]:
    """The parts of a conjunction, in order."""
    if predicate is None:
        return ()
    if isinstance(predicate, Binary) and predicate.op == "AND":
        return conjuncts(predicate.left) + conjuncts(predicate.right)
    return (predicate,)


def conjunction(parts: tuple[Expression, ...]) -> Expression | None:
    """The conjunction of the parts; None if there are none."""
    return reduce(partial(Binary, Type.BOOLEAN, "AND"), parts) if parts else None


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Replace, top down, every node for which `change` returns a replacement."""
    replacement = change(expression)
    if replacement is not None:
        return replacement

    def visit(value: Any) -> Any:
        if isinstance(value, Expression):
            return rewrite(value, change)
        return tuple(visit(item) for item in value) if isinstance(value, tuple) else value

    return type(expression)(*(visit(getattr(expression, field.name)) for field in fields(expression)))


def rename(expression: Expression, names: dict[str, str]) -> Expression:
    """Rename columns."""

    def change(node: Expression) -> Expression | None:
        return Column(node.type, names.get(node.name, node.name)) if isinstance(node, Column) else None

    return rewrite(expression, change)
