"""DROP: its effects on a mill's catalog, streams and queries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.algebra.python.definition import Declaration
from millstream.errors import BindError
from millstream.lang import ast, parse
from millstream.lang.spelling import spelled
from millstream.lang.table.ast import CreateTableFunction, CreateView

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def drop(mill: Mill, statement: ast.Drop) -> None:
    """Run a DROP statement; what others read stays, and is an error."""
    kind, name = statement.kind.lower(), statement.name
    in_python = isinstance(mill.catalog.user_defined(name), Declaration)
    over_tables_alone = mill.catalog.view(name) if kind in ("view", "function") else None
    if over_tables_alone is not None:
        actual = "view" if over_tables_alone.arguments is None else "function"
        if actual != kind:
            raise BindError("M2002", f"'{name}' is a {actual}", hint=f"DROP {actual.upper()} {spelled(name)}")
    elif kind == "function" or (kind == "aggregate" and in_python):
        mill.catalog.library.drop(name, kind, if_exists=statement.if_exists)
        return
    if kind == "query":
        if name in mill.queries or not statement.if_exists:
            mill.stop_query(mill.query(name).name)
        return
    if kind == "aggregate":
        if mill.catalog.drop(kind, name, if_exists=statement.if_exists):
            mill.journal.drop(kind, name)
        return
    actual = kind_of(mill, name) if ("relation", name) in mill.journal.texts else kind
    if actual != kind and not statement.if_exists and not (kind in ("stream", "view") and actual in ("stream", "view")):
        raise BindError("M2002", f"'{name}' is a {actual}", hint=f"DROP {actual.upper()} {spelled(name)}")
    mill.catalog.check_undeclared(kind, name)
    _check_unread(mill, kind, name)
    if mill.catalog.drop(kind, name, if_exists=statement.if_exists):
        mill.forget(name)


def replaced(mill: Mill, statement: CreateView) -> CreateView | None:
    """Return the view that CREATE OR REPLACE VIEW replaces, as such a statement, if there is one. What others read is
    an error, unless the new definition is the same."""
    name = statement.name
    text = mill.journal.texts.get(("relation", name))
    held = None if text is None else parse(text)[0]
    if not isinstance(held, CreateView) or isinstance(held, CreateTableFunction):
        return None
    held = replace(held, replaces=True, unless_exists=False)
    if held != statement:
        mill.catalog.check_undeclared("view", name)
        _check_unread(mill, "view", name)
    return held


def _check_unread(mill: Mill, kind: str, name: str) -> None:
    readers = mill.journal.readers(name)
    if readers:
        what, reader = readers[0]
        reading = "query" if what == "query" else kind_of(mill, reader)
        writes = what == "query" and mill.queries[reader].plan.writes
        message = f"{kind} '{name}' is {'written' if writes and kind == 'table' else 'read'} by {reading} '{reader}'"
        raise BindError("M2093", message, hint=f"DROP {reading.upper()} {spelled(reader)} first")


def kind_of(mill: Mill, name: str) -> str:
    """The word for a relation in CREATE and DROP."""
    match parse(mill.journal.texts["relation", name])[0]:
        case CreateTableFunction():
            return "function"
        case CreateView():
            return "view"
        case ast.CreateTable():
            return "table"
    return "stream"
