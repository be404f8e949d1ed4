"""Binds INSERT, UPDATE and DELETE that run for each tuple of a stream, to a program over the table's rows.

A row that breaks the key or NOT NULL is not written: the program returns the reason instead. A key that the table has
is refused, unless ON CONFLICT says what happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from millstream.algebra.expression import Binary, Case, Column, Expression, Literal, Unary, conjunction, conjuncts
from millstream.algebra.program.expression import Argument, Exists, walk
from millstream.algebra.program.program import LocalTable, Program
from millstream.algebra.program.query import Query, Source
from millstream.algebra.program.statement import RETURN, Insert, Statement, Update, expressions, queries
from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError, did_you_mean
from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.expression_text import text_of
from millstream.lang.spelling import spelled
from millstream.lang.table.ast import Conflict, Write
from millstream.logical.bind.aggregate.calls import Calls
from millstream.logical.bind.aggregate.definition import StatementBinder
from millstream.logical.bind.aggregate.query import Body, Columns
from millstream.logical.bind.aggregate.scope import Entry, LocalScope, as_written
from millstream.logical.bind.aggregate.types import assigned
from millstream.logical.bind.from_clause import bind_entries
from millstream.logical.bind.query import bind_select
from millstream.logical.bind.select_items import item_of_each
from millstream.logical.bind.table.driven import driven
from millstream.logical.bind.table.scope import StreamScope
from millstream.logical.bind.table.time import check_time
from millstream.logical.catalog import Catalog, TableDefinition
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.nodes.written_join import alike
from millstream.logical.plan import Key, Plan

REASON = (Attribute("reason", Type.VARCHAR),)
"""What a program returns for a row that it does not write."""
NULL = Literal(Type.VARCHAR, None)
"""A NULL without a type in a select list."""


def bind_write(write: Write, catalog: Catalog) -> TableWrite:
    """Return the plan of a statement that writes a table for each tuple of a stream."""
    with write.placing(), as_written():
        write = driven(write, catalog)
        definition = written_table(write.statement, catalog)
        if write.source is None:
            hint = "INSERT … SELECT, UPDATE … FROM and DELETE … USING name the stream that drives them"
            raise PlanError("M2123", "the statement reads no stream", hint=hint)
        source = write.source
        (entry,) = bind_entries((ast.JoinedSource(source, **source.place),), catalog, bind_select)
        plan = entry.plan
        assert plan is not None
        if entry.window is not None:
            raise entry.fail("M3003", "the stream of a write has no windows", "Leave the bracket out.")
        known = catalog.written(definition.name)
        unit = plan.schema.unit if known is None else known.unit
        check_time(plan.schema, unit, definition.name, source.place)
        if isinstance(write.statement, body.Insert):
            plan = _named(plan, write.statement, definition)
        binder = WriteBinder(definition, catalog, plan.schema.attributes, source.alias or entry.alias, write.alias)
        statements = binder.bind(write, plan)
        names = _used(statements) or {plan.schema.names[0]}
        kept = tuple(each for each in plan.schema.attributes if each.name in names)
        if len(kept) < len(plan.schema):
            plan = Project(plan, tuple((each.name, Column(plan.schema.type_of(each.name), each.name)) for each in kept))
        columns = (LocalTable(definition.name, definition.schema.attributes),)
        name = f"{type(write.statement).__name__.lower()}_{definition.name}"
        program = Program(name, kept, REASON, columns, (), statements)
        target = known or catalog.new_written(definition, unit)
        return TableWrite(plan, target, program, _routed(statements, definition, plan))


_OF_STREAMS: dict[type[body.Local], str] = {
    body.Insert: "rows come from a connector, or from mill.insert('s', rows); results go INTO a sink",
    body.Update: "a stream only grows; a query computes changed values",
    body.Delete: "punctuation and windows purge old tuples",
}
"""What to do instead of writing a stream."""


def written_table(write: body.Local, catalog: Catalog) -> TableDefinition:
    """The definition of the table that a statement writes; raise BindError if it may not be written."""
    name = write.table
    if not catalog.is_table(name):
        if name in catalog:
            message = f"'{name}' is not a table, and only tables are written"
            raise BindError("M2120", message, hint=_OF_STREAMS[type(write)])
        known = [table.name for table in catalog.tables]
        raise BindError(
            "M2002",
            f"unknown table '{name}'",
            hint=did_you_mean(name, known) or f"CREATE TABLE {spelled(name)} (…) first; results go INTO a sink",
        )
    definition = catalog.table(name)
    if definition.options:
        hint = f"a table without a connector can be written: CREATE TABLE {name} (…)"
        raise BindError("M2120", f"table '{name}' is read from files and cannot be written", hint=hint)
    return definition


def _named(plan: Plan, insert: body.Insert, definition: TableDefinition) -> Plan:
    """The rows to insert, under the names of the table's columns."""
    names = insert.columns or definition.schema.names
    for position, name in enumerate(names):
        if name not in definition.schema:
            hint = did_you_mean(name, definition.schema.names)
            raise BindError("M2001", f"unknown column '{name}' of table '{definition.name}'", hint=hint)
        if name in names[:position]:
            raise BindError("M2015", f"column '{name}' appears twice")
    if len(names) != len(plan.schema):
        wanted = f"{len(names)} column{'s' if len(names) != 1 else ''} ({', '.join(names)})"
        raise BindError("M2045", f"'{definition.name}' takes {wanted}, found {len(plan.schema)}")
    check_required(insert, definition)
    nulls = {name for name, item in plan.items if item == NULL} if isinstance(plan, Project) else set()
    if plan.schema.names == tuple(names) and not nulls:
        return plan
    made: list[tuple[str, Expression]] = []
    for name, each in zip(names, plan.schema, strict=True):
        type_ = definition.schema.type_of(name)
        made.append((name, Literal(type_, None) if each.name in nulls else Column(each.type, each.name)))
    return Project(plan, tuple(made))


def _written_items(write: Write, plan: Plan) -> Iterator[tuple[ast.SelectItem | None, str]]:
    """The item of the select list that makes each column, and its text."""
    assert write.source is not None
    query = write.source.relation
    items = (None,) * len(plan.schema) if isinstance(query, str) else item_of_each(query, len(plan.schema))
    for position, (name, item) in enumerate(zip(plan.schema.names, items, strict=True)):
        bound = str(plan.items[position][1]) if isinstance(plan, Project) else name
        yield item, (text_of(item.expression) if item is not None else "") or bound


def check_required(insert: body.Insert, definition: TableDefinition) -> None:
    """Refuse a list of columns that leaves out one which must not be NULL: no row would fit."""
    for name in (*definition.primary_key, *definition.not_null):
        if insert.columns and name not in insert.columns:
            part = "part of the key" if name in definition.primary_key else "NOT NULL"
            message = f"INSERT without column '{name}' of table '{definition.name}', which is {part}"
            raise BindError("M2128", message, hint=f"({', '.join((name, *insert.columns))})", **insert.place)


def _routed(statements: Sequence[Statement], table: TableDefinition, plan: Plan) -> Key:
    """The columns of the stream that equal the key of every row that the statements read or change; none if there are
    other rows."""
    found: dict[str, str] = {}
    for statement in statements:
        inner = [query for query in queries(statement) if query.sources]
        if isinstance(statement, Insert):
            conditions = [query.condition for query in inner]
        elif inner:
            return ()
        else:
            conditions = [statement.condition]
        for condition in conditions:
            equal = dict(_equalities(condition))
            if any(found.get(name, equal.get(name)) != equal.get(name) for name in table.primary_key):
                return ()
            found |= {name: equal[name] for name in table.primary_key if name in equal}
    for name in table.primary_key:
        if name not in found or not alike(plan.schema.type_of(found[name]), table.schema.type_of(name)):
            return ()
    return tuple(found[name] for name in table.primary_key)


def _equalities(condition: Expression | None) -> Iterator[tuple[str, str]]:
    """The columns of the table that a condition makes equal to columns of the stream."""
    for part in conjuncts(condition):
        if isinstance(part, Binary) and part.op == "=":
            for column, value in ((part.left, part.right), (part.right, part.left)):
                if isinstance(column, Column) and isinstance(value, Argument):
                    yield column.name.rpartition(".")[2], value.name


def _used(statements: Iterable[Statement]) -> set[str]:
    """The columns of the stream that statements use."""
    found: set[str] = set()
    for statement in statements:
        inside = [each for query in queries(statement) for each in query.expressions()]
        for expression in (*expressions(statement), *inside):
            found |= {node.name for node in walk(expression) if isinstance(node, Argument)}
    return found


class WriteBinder(StatementBinder):
    """Binds one statement. `stream` and `row` are the aliases of the tuple and of the table's row."""

    def __init__(
        self, table: TableDefinition, catalog: Catalog, arguments: Columns, stream: str, row: str | None
    ) -> None:
        self._table, self._arguments, self._stream, self._row = table, arguments, stream, row or table.name
        name = f"the statement on '{table.name}'"
        calls = Calls(catalog, name, True, of_tables=True)
        super().__init__(Body({table.name: table.schema.attributes}, calls, statement=True), arguments, REASON)

    def once(self, write: Write) -> Program:
        """The program of an UPDATE or DELETE that no stream drives."""
        return self._program("once", self.bind(write, None))

    def values(self, insert: body.Insert) -> Program:
        """The program that returns the rows of VALUES, with all columns of the table."""
        check_required(insert, self._table)
        made = replace(self._insert(insert), table=RETURN)
        return replace(self._program("values", (made,)), results=self._table.schema.attributes)

    def insertion(self, conflict: Conflict | None) -> Program:
        """The program that inserts its arguments, which are all columns of the table."""
        items = tuple(self._item(column, column) for column in self._table.schema)
        return self._program("insert", self._written(items, conflict))

    def _program(self, name: str, statements: tuple[Statement, ...]) -> Program:
        columns = (LocalTable(self._table.name, self._table.schema.attributes),)
        return Program(name, self._arguments, REASON, columns, (), statements)

    def bind(self, write: Write, plan: Plan | None) -> tuple[Statement, ...]:
        match write.statement:
            case body.Insert() if plan is not None:
                given = {each.name: each for each in plan.schema}
                written = dict(zip(plan.schema.names, _written_items(write, plan), strict=True))
                found = []
                for column in self._table.schema:
                    item, text = written.get(column.name, (None, ""))
                    with (item or write).placing():
                        found.append(self._item(column, given.get(column.name), text))
                return self._written(tuple(found), write.conflict)
            case body.Update() as update:
                return (self._updated(update),)
        return (self.statement(write.statement),)

    def _row_scope(self, table: str, columns: Columns) -> LocalScope:
        entry = Entry(self._row, table, columns)
        return StreamScope(self._arguments, [entry], stream=self._stream, strict=self._stream != "excluded")

    # --- INSERT ---------------------------------------------------------------------------------------------------

    def _written(self, items: tuple[Expression, ...], conflict: Conflict | None) -> tuple[Statement, ...]:
        """The statements that insert a row of these values, unless it is refused."""
        values = dict(zip(self._table.schema.names, items, strict=True))
        refused = [(_null(values[name]), f"column '{name}' is NULL") for name in self._required()]
        before: tuple[Statement, ...] = ()
        taken = self._taken(values)
        if taken is None:
            self._check_conflict(conflict)
        elif conflict is None:
            refused.append((taken, f"the table has its key ({', '.join(self._table.primary_key)})"))
        else:
            self._check_conflict(conflict)
            before = self._replaced(conflict, values)
        found = _any(condition for condition, _ in refused)
        if conflict is not None and taken is not None:
            found = taken if found is None else Binary(Type.BOOLEAN, "OR", found, taken)
        allowed = None if found is None else Unary(Type.BOOLEAN, "NOT", found)
        insert = Insert(self._table.name, (Query((), items, allowed),))
        return (*_reported(refused), *before, insert)

    def _item(self, column: Attribute, given: Attribute | None, written: str = "") -> Expression:
        """The value of a column: a NULL if it is not named. `written`: how the statement writes it."""
        if given is None:
            return Literal(column.type, None)
        value = Argument(given.type, given.name)
        return assigned(value, column.type, f"column '{column.name}'", written)

    def _required(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._table.primary_key, *self._table.not_null)))

    def _taken(self, values: dict[str, Expression]) -> Expression | None:
        """The condition that the table has the key of a row; None if it has no key."""
        if not self._table.primary_key:
            return None
        alias = self._body.alias(self._table.name)
        source = Source(alias, self._table.name, self._table.schema.names)
        return Exists(Type.BOOLEAN, Query((source,), (Literal(Type.INT, 1),), self._same_key(values, alias)))

    def _same_key(self, values: dict[str, Expression], alias: str) -> Expression | None:
        types = {each.name: each.type for each in self._table.schema.attributes}
        return conjunction(
            tuple(
                Binary(Type.BOOLEAN, "=", Column(types[name], f"{alias}.{name}"), values[name])
                for name in self._table.primary_key
            )
        )

    def _check_conflict(self, conflict: Conflict | None) -> None:
        if conflict is None:
            return
        key = self._table.primary_key
        if not key:
            hint = f"CREATE TABLE {self._table.name} (… PRIMARY KEY (…))"
            message = f"ON CONFLICT: table '{self._table.name}' has no key"
            raise BindError("M2121", message, hint=hint, **conflict.place)
        if conflict.key and {*conflict.key} != {*key}:
            message = f"ON CONFLICT ({', '.join(conflict.key)}): the key of '{self._table.name}' is ({', '.join(key)})"
            raise BindError("M2121", message, **conflict.place)

    def _replaced(self, conflict: Conflict, values: dict[str, Expression]) -> tuple[Statement, ...]:
        """DO UPDATE: the row with the key of the tuple, changed."""
        if not conflict.assignments:
            return ()
        update = body.Update(self._table.name, conflict.assignments, conflict.where, **conflict.place)
        bound = self._updated(update)
        same = self._same_key(values, self._table.name)
        narrowed = replace(bound, condition=conjunction(tuple(c for c in (same, bound.condition) if c is not None)))
        return (narrowed,)

    # --- UPDATE ---------------------------------------------------------------------------------------------------

    def _updated(self, update: body.Update) -> Update:
        for assignment in update.assignments:
            if assignment.column_name in self._table.primary_key:
                hint = "DELETE the row, and INSERT another one"
                message = f"column '{assignment.column_name}' is part of the key and cannot be changed"
                raise BindError("M2122", message, hint=hint, **assignment.place)
        bound = self.statement(update)
        assert isinstance(bound, Update)
        assigned_to = {position for position, _ in bound.assignments}
        names = enumerate(self._table.schema.names)
        required = {position: name for position, name in names if name in self._required()}
        refusing = tuple((position, name) for position, name in required.items() if position in assigned_to)
        return replace(bound, refusing=refusing)


def _null(value: Expression) -> Expression:
    return Unary(Type.BOOLEAN, "IS NULL", value)


def _any(conditions: Iterable[Expression]) -> Expression | None:
    found: Expression | None = None
    for condition in conditions:
        found = condition if found is None else Binary(Type.BOOLEAN, "OR", found, condition)
    return found


def _reported(refused: Sequence[tuple[Expression, str]]) -> tuple[Insert, ...]:
    """The statement that returns the reason why a row is refused."""
    found = _any(condition for condition, _ in refused)
    if found is None:
        return ()
    branches = tuple((condition, Literal(Type.VARCHAR, reason)) for condition, reason in refused)
    return (Insert(RETURN, (Query((), (Case(Type.VARCHAR, branches, None),), found),)),)
