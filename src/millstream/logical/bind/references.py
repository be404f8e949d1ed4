"""Binds REFERENCES: checks that the columns of a foreign key correspond to another stream's primary key."""

from __future__ import annotations

from millstream.algebra.schema import Schema
from millstream.amounts import amount
from millstream.errors import BindError
from millstream.lang import ast
from millstream.lang.spelling import spelled
from millstream.logical.bind.columns import check_types, known_columns
from millstream.logical.catalog import Catalog, References


def bind_references(
    clause: ast.References, name: str, schema: Schema, key: tuple[str, ...], catalog: Catalog
) -> References:
    """Return a foreign key of the stream `name`, which may refer to its own primary key."""
    with clause.placing():
        stream = clause.stream.lower()
        columns = known_columns(clause.columns, schema, "FOREIGN KEY")
        if stream != name:
            schema_there, key = _referenced(stream, catalog)
        else:
            schema_there = schema
        if not key:
            hint = f"CREATE STREAM {spelled(stream)} (…) PRIMARY KEY (…)"
            raise BindError("M2032", f"stream '{stream}' has no PRIMARY KEY to refer to", hint=hint)
        there = known_columns(clause.key or key, schema_there, f"REFERENCES {stream}")
        if {*there} != {*key}:
            message = f"({', '.join(there)}) is not the PRIMARY KEY of '{stream}'"
            raise BindError("M2032", message, hint=f"REFERENCES {spelled(stream)} ({', '.join(map(spelled, key))})")
        if len(columns) != len(there):
            hint = f"FOREIGN KEY ({', '.join('…' for _ in there)}) REFERENCES {spelled(stream)}"
            message = (
                f"the PRIMARY KEY of '{stream}' has {amount(len(there), 'column')}, the foreign key {len(columns)}"
            )
            raise BindError("M2032", message, hint=hint)
        own = [(column, schema.type_of(column)) for column in columns]
        check_types("M2032", *zip(own, [(f"{stream}.{c}", schema_there.type_of(c)) for c in there], strict=True))
        return References(columns, stream, there)


def _referenced(stream: str, catalog: Catalog) -> tuple[Schema, tuple[str, ...]]:
    """Return the schema and the primary key of another base stream."""
    if catalog.is_table(stream) or stream in catalog.derived or catalog.view(stream) is not None:
        hint = "REFERENCES names a stream that has columns and a PRIMARY KEY of its own."
        raise BindError("M2032", f"'{stream}' is not a base stream", hint=hint)
    definition = catalog.stream(stream)
    return definition.schema, definition.primary_key
