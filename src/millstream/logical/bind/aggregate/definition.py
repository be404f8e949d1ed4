"""Binds CREATE AGGREGATE to a program, and checks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.algebra.expression import Expression, Literal
from millstream.algebra.program.program import LocalTable, Program
from millstream.algebra.program.query import Query
from millstream.algebra.program.statement import INWINDOW, RETURN, Delete, Insert, Statement, Update
from millstream.algebra.schema import Attribute
from millstream.errors import BindError, did_you_mean
from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.expression_text import text_of
from millstream.logical.bind.aggregate.calls import Calls
from millstream.logical.bind.aggregate.query import Body, Columns, members
from millstream.logical.bind.aggregate.scope import Entry, LocalScope, as_written
from millstream.logical.bind.aggregate.types import assigned, attributes
from millstream.logical.bind.select_items import item_of_each
from millstream.logical.catalog import Catalog


def bind_aggregate(statement: body.CreateAggregate, catalog: Catalog) -> Program:
    """Return the program of a declared aggregate; raise BindError or PlanError with a position on a mistake."""
    with statement.placing(), as_written():
        arguments = attributes(statement.arguments, "argument")
        results = tuple(
            Attribute(column.name or statement.name, column.type) for column in attributes(statement.results, "column")
        )
        tables = _tables(statement, arguments)
        _check_blocks(statement)
        if statement.algebraic and (not statement.window or [a.type for a in arguments] != [r.type for r in results]):
            detail = "ALGEBRAIC: the aggregate of the aggregates of parts is that of the whole."
            needs = "is a window version, with one argument of the type of its result"
            raise BindError("M2048", f"an ALGEBRAIC aggregate {needs}", detail=detail)
        binder = StatementBinder(Body(tables, Calls(catalog, statement.name, statement.window)), arguments, results)
        bound = [(block.states, binder.block(block)) for block in statement.blocks]
        blocks = {state: statements for states, statements in bound for state in states}
        local = tuple(LocalTable(name, columns) for name, columns in tables.items() if name != INWINDOW)
        if not any(isinstance(each, Insert) and each.table == RETURN for _, block in bound for each in block):
            hint = "a row of the result: INSERT INTO RETURN VALUES (…)"
            raise BindError("M2040", f"aggregate '{statement.name}' returns nothing", hint=hint)
        inwindow = tuple(column.name for column in tables.get(INWINDOW, ()))
        return Program(
            statement.name,
            arguments,
            results,
            local,
            blocks["INITIALIZE"],
            blocks["ITERATE"],
            blocks.get("TERMINATE", ()),
            blocks.get("EXPIRE", ()),
            inwindow,
            statement.window,
            statement.algebraic,
            statement.ignore_nulls,
        )


def _tables(statement: body.CreateAggregate, arguments: Columns) -> dict[str, Columns]:
    found: dict[str, Columns] = {}
    for table in statement.tables:
        with table.placing():
            if table.name in found:
                raise BindError("M2041", f"table '{table.name}' is declared twice")
            if table.name == RETURN:
                raise BindError("M2041", "RETURN is the table of the results", hint="take another name")
            columns = attributes(table.columns, "column")
            if table.name == INWINDOW:
                _check_inwindow(statement, columns, arguments)
            found[table.name] = columns
    return found


def _check_inwindow(statement: body.CreateAggregate, columns: Columns, arguments: Columns) -> None:
    if not statement.window:
        hint = f"CREATE WINDOW AGGREGATE {statement.name}"
        raise BindError("M2041", "inwindow belongs to window aggregates", hint=hint)
    given, wanted = ([column.type.value for column in each] for each in (columns, arguments))
    if given != wanted:
        hint = f"TABLE inwindow({', '.join(f'w{each.name} {each.type.value}' for each in arguments)})"
        message = f"inwindow has ({', '.join(given)}), the arguments are ({', '.join(wanted)})"
        raise BindError("M2043", message, hint=hint)


def _check_blocks(statement: body.CreateAggregate) -> None:
    kind = "a window aggregate" if statement.window else "a base aggregate"
    refused, instead = ("TERMINATE", "EXPIRE") if statement.window else ("EXPIRE", "TERMINATE")
    seen: dict[str, body.Block] = {state: block for block in statement.blocks for state in block.states}
    if refused in seen:
        hint = "CREATE WINDOW AGGREGATE" if refused == "EXPIRE" else "return the result in INITIALIZE and ITERATE"
        raise BindError("M2040", f"{kind} has {instead}, not {refused}", hint=hint, **seen[refused].place)
    for state in ("INITIALIZE", "ITERATE"):
        if state not in seen:
            hint = "one block for both: INITIALIZE: ITERATE: { … }"
            raise BindError("M2040", f"aggregate '{statement.name}' has no {state}", hint=hint)


class StatementBinder:
    """Binds the statements of blocks."""

    def __init__(self, within: Body, arguments: Columns, results: Columns) -> None:
        self._body, self._results = within, results
        self._scope = LocalScope(arguments)

    def block(self, block: body.Block) -> tuple[Statement, ...]:
        return tuple(self.statement(statement) for statement in block.statements)

    def statement(self, statement: body.Local) -> Statement:
        with statement.placing():
            match statement:
                case body.Insert():
                    return self._insert(statement)
                case body.Update():
                    columns = self._changed(statement)
                    return self._update(statement, columns)
                case body.Delete():
                    columns = self._changed(statement)
                    return Delete(statement.table, self._condition(statement.where, statement.table, columns))
        raise AssertionError(statement)

    def _changed(self, statement: body.Update | body.Delete) -> Columns:
        """The columns of a table whose rows are updated or deleted."""
        verb = "updated" if isinstance(statement, body.Update) else "deleted from"
        if statement.table == RETURN:
            raise BindError("M2042", f"RETURN cannot be {verb}", hint="INSERT INTO RETURN …")
        columns = self._body.columns(statement.table)
        if statement.table == INWINDOW and isinstance(statement, body.Update):
            raise _system_table("updated")
        return columns

    def _target(self, table: str) -> Columns:
        """The columns of a table into which rows are inserted."""
        if table == INWINDOW and INWINDOW in self._body.tables:
            raise _system_table("written")
        return self._results if table == RETURN else self._body.columns(table)

    def _insert(self, statement: body.Insert) -> Insert:
        columns = self._target(statement.table)
        named = statement.columns or tuple(column.name for column in columns)
        positions = [_position(name, columns, statement.table) for name in named]
        for place, name in enumerate(named):
            if name in named[:place]:
                raise BindError("M2015", f"column '{name}' appears twice")
        found: list[Query] = []
        if statement.query is not None:
            for member in members(statement.query):
                query, given = self._body.query(member, self._scope)
                _check_count(len(given), len(named), statement)
                items = []
                written = item_of_each(member, len(given))
                for value, at, item in zip(query.items, positions, written, strict=True):
                    with (item or member).placing():
                        items.append(_assigned(value, columns[at], text_of(item.expression) if item else ""))
                found.append(replace(query, items=_row(items, positions, columns)))
            return Insert(statement.table, tuple(found))
        condition = None
        if statement.where is not None:
            condition = self._body.binder(self._scope, "WHERE").condition(statement.where)
        for row in statement.rows:
            _check_count(len(row), len(named), statement)
            bound = []
            for node, position in zip(row, positions, strict=True):
                with node.placing():
                    value = self._body.binder(self._scope, "VALUES").bind(node)
                    bound.append(_assigned(value, columns[position], text_of(node)))
            found.append(Query((), _row(bound, positions, columns), condition))
        return Insert(statement.table, tuple(found))

    def _row_scope(self, table: str, columns: Columns) -> LocalScope:
        scope = self._scope.inside()
        scope.entries.append(Entry(table, table, columns))
        return scope

    def _condition(self, where: ast.Expr | None, table: str, columns: Columns) -> Expression | None:
        if where is None:
            return None
        return self._body.binder(self._row_scope(table, columns), "WHERE").condition(where)

    def _update(self, statement: body.Update, columns: Columns) -> Update:
        binder = self._body.binder(self._row_scope(statement.table, columns), "SET")
        found: list[tuple[int, Expression]] = []
        for assignment in statement.assignments:
            with assignment.placing():
                position = _position(assignment.column_name, columns, statement.table)
                if any(position == other for other, _ in found):
                    raise BindError("M2015", f"column '{assignment.column_name}' is assigned twice")
                value = assignment.value
                found.append((position, _assigned(binder.bind(value), columns[position], text_of(value))))
        return Update(statement.table, tuple(found), self._condition(statement.where, statement.table, columns))


def _position(name: str, columns: Columns, table: str) -> int:
    names = [column.name for column in columns]
    if name not in names:
        raise BindError("M2001", f"unknown column '{name}' of table '{table}'", hint=did_you_mean(name, names))
    return names.index(name)


def _assigned(value: Expression, column: Attribute, written: str = "") -> Expression:
    return assigned(value, column.type, f"column '{column.name}'", written)


def _row(values: Sequence[Expression], positions: Sequence[int], columns: Columns) -> tuple[Expression, ...]:
    """The values in the order of the table's columns; a column that is not named is NULL."""
    given = dict(zip(positions, values, strict=True))
    return tuple(given.get(at, Literal(column.type, None)) for at, column in enumerate(columns))


def _check_count(given: int, wanted: int, statement: body.Insert) -> None:
    if given != wanted:
        name = "RETURN" if statement.table == RETURN else f"'{statement.table}'"
        raise BindError("M2045", f"{name} takes {wanted} value{'s' if wanted != 1 else ''}, found {given}")


def _system_table(verb: str) -> BindError:
    detail = "The system inserts the tuples of the window and removes the expired ones; a body may delete others."
    return BindError("M2042", f"inwindow cannot be {verb}", detail=detail)
