"""Binds what runs once over tables: a SELECT over tables alone, and a statement that no stream drives."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from millstream.algebra.program.expression import Argument
from millstream.algebra.program.program import LocalTable, Program
from millstream.algebra.program.statement import RETURN, Insert
from millstream.algebra.schema import Attribute
from millstream.errors import PlanError
from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.table.ast import CalledSource, Conflict, Write
from millstream.logical.bind.aggregate.calls import Calls
from millstream.logical.bind.aggregate.query import Body, Columns
from millstream.logical.bind.aggregate.rewriting import unified
from millstream.logical.bind.aggregate.scope import FunctionScope, LocalScope, as_written
from millstream.logical.bind.aggregate.types import attributes
from millstream.logical.bind.table.called import check_called
from millstream.logical.bind.table.relations import relations
from millstream.logical.bind.table.write import WriteBinder, written_table
from millstream.logical.catalog import Catalog, TableDefinition, View


def bind_once(query: ast.Query, catalog: Catalog) -> Program:
    """Return the program of a SELECT over tables, which returns its rows."""
    query = expanded(query, catalog)
    tables = {name: catalog.table(name).schema.attributes for name in dict.fromkeys(relations(query))}
    with query.placing(), as_written():
        calls = Calls(catalog, "a query over tables", True, of_tables=True)
        found = unified(Body(tables, calls).union(query, LocalScope(())))
        columns = found[0][1]
        statement = Insert(RETURN, tuple(made for made, _ in found))
        held = tuple(LocalTable(name, own) for name, own in tables.items())
        return Program("select", (), _unique(columns), held, (), (statement,))


def bind_table_function(view: View, catalog: Catalog) -> tuple[Columns, Columns]:
    """Return the arguments and the columns of a table function."""
    query, arguments = expanded(view.query, catalog), attributes(view.arguments or (), "argument")
    tables = {name: catalog.table(name).schema.attributes for name in dict.fromkeys(relations(query))}
    with query.placing(), as_written():
        within = Body(tables, Calls(catalog, "a table function", True, of_tables=True))
        given = {each.name: Argument(each.type, each.name) for each in arguments}
        _, columns = within.query(query, FunctionScope((), given=given))
        return arguments, _unique(columns)


def _unique(columns: Columns) -> Columns:
    """The columns of a result, equal names numbered: `k`, `k_1`."""
    made: list[Attribute] = []
    for column in columns:
        name, number = column.name, 0
        while any(name == other.name for other in made):
            number += 1
            name = f"{column.name}_{number}"
        made.append(replace(column, name=name))
    return tuple(made)


def expanded(node: Any, catalog: Catalog) -> Any:
    """Return a query with the views over tables replaced by their queries."""
    if isinstance(node, tuple):
        return tuple(expanded(part, catalog) for part in node)
    if not isinstance(node, ast.Node):
        return node
    if isinstance(node, ast.Source) and isinstance(node.relation, str):
        return _read(node, node.relation, catalog)
    changed = {part.name: expanded(getattr(node, part.name), catalog) for part in fields(node)}
    return replace(node, **changed)


def _read(source: ast.Source, name: str, catalog: Catalog) -> ast.Source:
    """Return a source with its view or table function replaced by the query."""
    view = catalog.view(name)
    check_called(source, name, catalog)
    if view is None:
        return source
    made = replace(source, relation=expanded(view.query, catalog), alias=source.alias or name)
    if view.arguments is None:
        return made
    parts = {part.name: getattr(made, part.name) for part in fields(ast.Source)}
    arguments = expanded(source.arguments, catalog)
    return CalledSource(**(parts | {"arguments": arguments}), parameters=view.arguments)


def insertion(table: TableDefinition, catalog: Catalog, conflict: Conflict | None = None) -> Program:
    """The program that inserts rows of all columns of a table."""
    return WriteBinder(table, catalog, table.schema.attributes, "excluded", None).insertion(conflict)


def bind_values(write: Write, catalog: Catalog) -> Program:
    """Return the program that returns the rows of VALUES."""
    assert isinstance(write.statement, body.Insert)
    with write.placing(), as_written():
        table = written_table(write.statement, catalog)
        return WriteBinder(table, catalog, (), "", None).values(write.statement)


def bind_written_once(write: Write, catalog: Catalog) -> Program:
    """Return the program of an UPDATE or DELETE that no stream drives."""
    with write.placing(), as_written():
        definition = written_table(write.statement, catalog)
        if write.source is not None:
            hint = "A stream drives INSERT … SELECT, UPDATE … FROM and DELETE … USING; VALUES inserts rows once."
            raise PlanError("M2123", "the statement reads tables alone", hint=hint, **write.source.place)
        return WriteBinder(definition, catalog, (), "", write.alias).once(write)
