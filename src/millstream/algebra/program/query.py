"""Queries over local tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.expression import Expression
from millstream.algebra.program.expression import subqueries
from millstream.algebra.python.definition import Declaration
from millstream.algebra.types import Type
from millstream.algebra.values import record

if TYPE_CHECKING:
    from millstream.algebra.program.program import Program


@record("local_source")
class Source:
    """A local table by name, or a subquery, under an alias that is unique in the program. `outer`: LEFT JOIN, whose
    condition is `on`."""

    alias: str
    relation: str | Query
    columns: tuple[str, ...]
    on: Expression | None = None
    outer: bool = False

    def __str__(self) -> str:
        relation = self.relation if isinstance(self.relation, str) else f"({self.relation})"
        named = relation if relation == self.alias else f"{relation} {self.alias}"
        return named if self.on is None else f"LEFT JOIN {named} ON {self.on}"


@record("local_call")
class Call:
    """An aggregate of a query. `by`: a program, a class in Python, or a built-in function computed on columns, of the
    column `argument`; None: a function of `runtime.program.scalars`, by name. No argument: COUNT(*)."""

    type: Type
    function: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    by: Program | Declaration | AggregateCall | None = None

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.arguments)) or "*"
        return f"{self.function.upper()}({'DISTINCT ' if self.distinct else ''}{inner})"


@record("local_query")
class Query:
    """Without sources it has one row, if the condition holds. `aggregated`: with GROUP BY or an aggregate; items,
    HAVING and order then use `GroupValue` and `CallValue`. Order: expressions, each with True if descending. `members`:
    in FROM alone, a UNION ALL, which has nothing else."""

    sources: tuple[Source, ...]
    items: tuple[Expression, ...]
    condition: Expression | None = None
    aggregated: bool = False
    groups: tuple[Expression, ...] = ()
    calls: tuple[Call, ...] = ()
    having: Expression | None = None
    distinct: bool = False
    order: tuple[tuple[Expression, bool], ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    members: tuple[Query, ...] = ()

    def __str__(self) -> str:
        if self.members:
            return " UNION ALL ".join(map(str, self.members))
        text = f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(map(str, self.items))}"
        if self.sources:
            text += f" FROM {', '.join(map(str, self.sources))}"
        if self.condition is not None:
            text += f" WHERE {self.condition}"
        if self.groups:
            text += f" GROUP BY {', '.join(map(str, self.groups))}"
        return text

    def expressions(self) -> Iterator[Expression]:
        """The expressions of the query itself, without those of its subqueries."""
        yield from self.items
        yield from self.groups
        yield from (argument for call in self.calls for argument in call.arguments)
        yield from (source.on for source in self.sources if source.on is not None)
        yield from (key for key, _ in self.order)
        for part in (self.condition, self.having, self.limit, self.offset):
            if part is not None:
                yield part

    def inner(self) -> Iterator[Query]:
        """The subqueries of FROM and of the expressions."""
        yield from self.members
        yield from (source.relation for source in self.sources if isinstance(source.relation, Query))
        for expression in self.expressions():
            yield from subqueries(expression)

    def walk(self) -> Iterator[Query]:
        yield self
        for query in self.inner():
            yield from query.walk()
