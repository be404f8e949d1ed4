"""The expressions that only programs have. Columns of local tables are `Column`s named `alias.column`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from millstream.algebra.expression import Expression
from millstream.algebra.values import record

if TYPE_CHECKING:
    from millstream.algebra.program.program import Program
    from millstream.algebra.program.query import Query


@record("argument")
class Argument(Expression):
    """An argument of the aggregate, of the tuple that is taken or expires; in TERMINATE, of the last one taken."""

    name: str

    def __str__(self) -> str:
        return self.name


@record("oldest")
class Oldest(Expression):
    """A column, by position, of the oldest tuple in the window; NULL if the window is empty."""

    position: int
    name: str

    def __str__(self) -> str:
        return f"oldest().{self.name}"


@record("group_value")
class GroupValue(Expression):
    """A value of GROUP BY, by position."""

    position: int

    def __str__(self) -> str:
        return f"group_{self.position + 1}"


@record("call_value")
class CallValue(Expression):
    """The result of an aggregate of the query, by position."""

    position: int

    def __str__(self) -> str:
        return f"aggregate_{self.position + 1}"


@record("scalar_query")
class ScalarQuery(Expression):
    """The only column of the only row of a query; NULL without rows."""

    query: Query

    def __str__(self) -> str:
        return f"({self.query})"


@record("exists")
class Exists(Expression):
    query: Query

    def __str__(self) -> str:
        return f"EXISTS ({self.query})"


@record("in_query")
class InQuery(Expression):
    operand: Expression
    query: Query

    def __str__(self) -> str:
        return f"({self.operand} IN ({self.query}))"


@record("fitting")
class Fitting(Expression):
    """The value for a column of a shorter type; unlike a CAST, one that does not fit is an error, not NULL."""

    operand: Expression

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type.value})"


@record("applied_program")
class Applied(Expression):
    """A column, by position, of the last row that a base version returns over lists of arguments; NULL if it returns
    none."""

    program: Program
    result: int
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        column = f".{self.program.results[self.result].name}" if len(self.program.results) > 1 else ""
        return f"{self.program.name}({', '.join(map(str, self.arguments))}){column}"


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all expressions inside it, but not those of subqueries."""
    yield expression
    for child in expression.children():
        yield from walk(child)


def subqueries(expression: Expression) -> Iterator[Query]:
    """The subqueries inside an expression, but not those inside them."""
    for node in walk(expression):
        if isinstance(node, ScalarQuery | Exists | InQuery):
            yield node.query
