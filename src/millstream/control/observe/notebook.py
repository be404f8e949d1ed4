"""Connections, queries and printed answers as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from millstream.errors import redacted

if TYPE_CHECKING:
    from millstream.control.connection import Connection
    from millstream.control.query import Query


class Text(str):
    """The answer to EXPLAIN or SHOW: a string that a notebook shows as it is printed."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return preformatted(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))


class Picture(str):
    """A picture (SVG): the text of a file, which a notebook shows."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def preformatted(text: object) -> str:
    """
    >>> preformatted("a < b")
    '<pre style="text-align: left">a &lt; b</pre>'
    """
    return f'<pre style="text-align: left">{escape(str(text))}</pre>'


def connection_html(connection: Connection) -> str:
    """The streams and the queries of a connection."""
    mill = connection.mill
    streams = ((stream.name, stream.schema) for stream in mill.catalog.streams)
    tables = ((table.name, table.schema) for table in mill.catalog.tables)
    queries = ((query.name, redacted(query.text)) for query in mill.queries.values())
    return (
        f"<p><b>{escape(repr(connection))}</b></p>"
        f"{_table(('stream', 'columns'), streams)}{_table(('table', 'columns'), tables)}"
        f"{_table(('query', 'statement'), queries)}"
    )


def query_html(query: Query) -> str:
    """The statement, the columns and, of a running query, the progress of a query."""
    rows = [("query", query.name or "not started"), ("statement", redacted(query.text)), ("columns", query.schema)]
    return _table((), rows) + (preformatted(query.progress()) if query.running else "")


def _table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, or nothing where it would have no rows."""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    head = f"<tr>{_cells('th', heading)}</tr>" if heading else ""
    return f"<table>{head}{body}</table>" if body else ""


def _cells(tag: str, values: Iterable[object]) -> str:
    return "".join(f'<{tag} style="text-align: left">{escape(str(value))}</{tag}>' for value in values)
