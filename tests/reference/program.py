"""Programs of user-defined aggregates, interpreted statement by statement over lists of rows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from millstream.algebra.expression import Column, Expression, Literal, rewrite
from millstream.algebra.program.expression import (
    Argument,
    CallValue,
    Exists,
    GroupValue,
    InQuery,
    Oldest,
    ScalarQuery,
)
from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Call, Query, Source
from millstream.algebra.program.statement import INWINDOW, RETURN, Delete, Insert, Statement, Update
from millstream.errors import SeveralRows
from tests.reference.evaluate import evaluate

Row = tuple[Any, ...]
Scope = dict[str, Any]
"""The values of arguments and columns by name, and of groups and aggregates by position."""


class Interpreter:
    """One instance of an aggregate. `window` has the rows of inwindow, oldest first."""

    def __init__(self, program: Program, window: list[Row] | None = None) -> None:
        self.program = program
        self.tables: dict[str, list[Row]] = {table.name: [] for table in program.tables}
        self.tables[INWINDOW] = [] if window is None else window
        self.columns = {table.name: [column.name for column in table.columns] for table in program.tables}
        self.columns[INWINDOW] = list(program.inwindow)
        self.started = False
        self.last: Row = ()

    def take(self, arguments: Row) -> list[Row]:
        block = self.program.iterate if self.started else self.program.initialize
        self.started, self.last = True, arguments
        return self._run(block, arguments)

    def terminate(self) -> list[Row]:
        return self._run(self.program.terminate, self.last)

    def expire(self, arguments: Row) -> list[Row]:
        return self._run(self.program.expire, arguments)

    def _run(self, block: tuple[Statement, ...], arguments: Row) -> list[Row]:
        names = [f"@{argument.name}" for argument in self.program.arguments]
        scope = dict(zip(names, arguments, strict=bool(arguments)))
        returned: list[Row] = []
        for statement in block:
            match statement:
                case Insert(table=table, queries=queries):
                    rows = [row for query in queries for row in self.query(query, scope)]
                    (returned if table == RETURN else self.tables[table]).extend(rows)
                case Update(table=table, assignments=assignments, condition=condition):
                    self.tables[table][:] = [
                        self._changed(row, inner, assignments)
                        if condition is None or self.value(condition, inner) is True
                        else row
                        for row, inner in self._rows(table, scope)
                    ]
                case Delete(table=table, condition=condition):
                    self.tables[table][:] = [
                        row
                        for row, inner in self._rows(table, scope)
                        if condition is not None and self.value(condition, inner) is not True
                    ]
        return returned

    def _rows(self, table: str, scope: Scope) -> list[tuple[Row, Scope]]:
        names = [f"{table}.{name}" for name in self.columns[table]]
        return [(row, scope | dict(zip(names, row, strict=True))) for row in list(self.tables[table])]

    def _changed(self, row: Row, scope: Scope, assignments: tuple[tuple[int, Expression], ...]) -> Row:
        values = {position: self.value(value, scope) for position, value in assignments}
        return tuple(values.get(position, old) for position, old in enumerate(row))

    # --- expressions ------------------------------------------------------------------------------------------------

    def value(self, expression: Expression, scope: Scope) -> Any:
        def change(node: Expression) -> Expression | None:
            match node:
                case Column(name=name):
                    return Literal(node.type, scope[name])
                case Argument(name=name):
                    return Literal(node.type, scope[f"@{name}"])
                case GroupValue(position=position):
                    return Literal(node.type, scope[f"group {position}"])
                case CallValue(position=position):
                    return Literal(node.type, scope[f"call {position}"])
                case Oldest(position=position):
                    window = self.tables[INWINDOW]
                    return Literal(node.type, window[0][position] if window else None)
                case ScalarQuery(query=query):
                    rows = self.query(query, scope)
                    if len(rows) > 1:
                        raise SeveralRows
                    return Literal(node.type, rows[0][0] if rows else None)
                case Exists(query=query):
                    return Literal(node.type, bool(self.query(query, scope)))
                case InQuery(operand=operand, query=query):
                    return Literal(node.type, contained(self.value(operand, scope), self.query(query, scope)))
            return None

        return evaluate(rewrite(expression, change), {})

    # --- queries ----------------------------------------------------------------------------------------------------

    def query(self, query: Query, outer: Scope) -> list[Row]:
        if query.members:
            return [row for member in query.members for row in self.query(member, outer)]
        scopes = [outer]
        for source in query.sources:
            scopes = [inner for scope in scopes for inner in self._joined(source, scope)]
        if query.condition is not None:
            scopes = [scope for scope in scopes if self.value(query.condition, scope) is True]
        if query.aggregated:
            scopes = list(self._grouped(query, scopes, outer))
            if query.having is not None:
                scopes = [scope for scope in scopes if self.value(query.having, scope) is True]
        keyed = [
            (
                [self.value(key, scope) for key, _ in query.order],
                tuple(self.value(item, scope) for item in query.items),
            )
            for scope in scopes
        ]
        if query.distinct:
            keyed = [pair for n, pair in enumerate(keyed) if pair[1] not in [row for _, row in keyed[:n]]]
        for position, (_, descending) in reversed(list(enumerate(query.order))):
            known = [pair for pair in keyed if pair[0][position] is not None]
            known.sort(key=lambda pair, position=position: pair[0][position], reverse=descending)  # type: ignore[misc]
            keyed = known + [pair for pair in keyed if pair[0][position] is None]
        rows = [row for _, row in keyed]
        offset = 0 if query.offset is None else self.value(query.offset, outer) or 0
        limit = None if query.limit is None else self.value(query.limit, outer)
        return rows[offset:] if limit is None else rows[offset : offset + limit]

    def _joined(self, source: Source, scope: Scope) -> Iterable[Scope]:
        names = [f"{source.alias}.{name}" for name in source.columns]
        rows = (
            self.query(source.relation, scope) if isinstance(source.relation, Query) else self.tables[source.relation]
        )
        found = [scope | dict(zip(names, row, strict=True)) for row in rows]
        if not source.outer:
            return found
        matching = [inner for inner in found if source.on is None or self.value(source.on, inner) is True]
        return matching or [scope | dict.fromkeys(names)]

    def _grouped(self, query: Query, scopes: list[Scope], outer: Scope) -> Iterable[Scope]:
        groups: dict[Row, list[Scope]] = {} if query.groups else {(): []}
        for scope in scopes:
            groups.setdefault(tuple(self.value(group, scope) for group in query.groups), []).append(scope)
        for key, inside in groups.items():
            values = {f"group {position}": value for position, value in enumerate(key)}
            results = [self._called(call, inside) for call in query.calls]
            for row in product(*results):
                yield outer | values | {f"call {position}": value for position, value in enumerate(row)}

    def _called(self, call: Call, scopes: list[Scope]) -> list[Any]:
        rows = [tuple(self.value(argument, scope) for argument in call.arguments) for scope in scopes]
        if call.distinct:
            rows = list(dict.fromkeys(rows))
        if isinstance(call.by, Program):
            return [value for (value,) in run_base(call.by, rows)]
        return [built_in(call.function, rows)]


def run_base(program: Program, rows: list[Row]) -> list[Row]:
    """All rows that a base version returns over these tuples."""
    instance, found = Interpreter(program), []
    for row in rows:
        if not (program.ignore_nulls and None in row):
            found += instance.take(row)
    return found + instance.terminate() if instance.started else []


def built_in(function: str, rows: list[Row]) -> Any:
    if rows and rows[0] == ():
        return len(rows)
    values = [value for row in rows for value in row if value is not None]
    match function:
        case "COUNT":
            return len(values)
        case "SUM":
            return sum(values) if values else None
        case "AVG":
            return sum(values) / len(values) if values else None
        case "MIN":
            return min(values, default=None)
        case "MAX":
            return max(values, default=None)
    raise AssertionError(function)


def contained(value: Any, rows: list[Row]) -> bool | None:
    if not rows:
        return False
    if value is None:
        return None
    return True if (value,) in rows else None if (None,) in rows else False
