"""The statements of a program. Each sees the tables as they were before it."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.algebra.expression import Expression, calls_code
from millstream.algebra.program.expression import subqueries
from millstream.algebra.program.query import Query
from millstream.algebra.values import record

RETURN = "return"
INWINDOW = "inwindow"


@record("local_insert")
class Insert:
    """The rows of the queries, in order, are appended to a local table, or returned."""

    table: str
    queries: tuple[Query, ...]

    def __str__(self) -> str:
        return f"INSERT INTO {self.table} {'; '.join(map(str, self.queries))}"


@record("local_update")
class Update:
    """Assignments: positions of columns and their new values, over the row named `table`. `refusing`: a row whose new
    values do not fit stays as it is, and the reason is returned; the positions and names of columns that may not become
    NULL. Without it, a value that does not fit is an error of the statement."""

    table: str
    assignments: tuple[tuple[int, Expression], ...]
    condition: Expression | None = None
    refusing: tuple[tuple[int, str], ...] | None = None

    def __str__(self) -> str:
        values = ", ".join(f"{position} = {value}" for position, value in self.assignments)
        return f"UPDATE {self.table} SET {values}" + ("" if self.condition is None else f" WHERE {self.condition}")


@record("local_delete")
class Delete:
    table: str
    condition: Expression | None = None

    def __str__(self) -> str:
        return f"DELETE FROM {self.table}" + ("" if self.condition is None else f" WHERE {self.condition}")


Statement = Insert | Update | Delete


def expressions(statement: Statement) -> Iterator[Expression]:
    """The expressions of a statement that are not inside a query."""
    match statement:
        case Update(assignments=assignments, condition=condition):
            yield from (value for _, value in assignments)
            if condition is not None:
                yield condition
        case Delete(condition=condition) if condition is not None:
            yield condition


def all_expressions(statement: Statement) -> Iterator[Expression]:
    """The expressions of a statement and of all its queries."""
    yield from expressions(statement)
    for query in queries(statement):
        yield from query.expressions()


def runs_code(statement: Statement) -> bool:
    """True if the statement calls functions written in Python, or other aggregates."""
    called = any(call.by is not None for query in queries(statement) for call in query.calls)
    return called or any(map(calls_code, all_expressions(statement)))


def queries(statement: Statement) -> Iterator[Query]:
    """All queries of a statement, also those inside others."""
    found = [*statement.queries] if isinstance(statement, Insert) else []
    for expression in expressions(statement):
        found += subqueries(expression)
    for query in found:
        yield from query.walk()
