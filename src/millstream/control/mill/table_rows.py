"""Rows inserted into a table: all of them fit, or none is inserted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from millstream.errors import BindError
from millstream.ingest.rows import check_rows, read_rows
from millstream.ingest.tables import repeated_key

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def extend_table(mill: Mill, name: str, rows: Any) -> None:
    """Insert rows into a table that streams write, or that no query reads yet."""
    live = mill.written.live(name)
    if not live and (readers := mill.written.static_readers(name)):
        what, reader = readers[0]
        hint = f"fill it before {what} '{reader}' reads it"
        raise BindError("M2096", f"table '{name}' is static and in use", hint=hint)
    table = mill.catalog.table(name)
    read = read_rows(check_rows(name, rows), table.schema, (*table.primary_key, *table.not_null))
    if read.bad.height:
        line, reason = read.bad.row(0)[:2]
        message = f"row {read.bad_places[0] + 1} does not fit table '{name}'"
        raise BindError("M2095", message, detail=f"{line}: {reason}.", hint="No row has been inserted.")
    if live:
        mill.written.insert(name, read.frame)
        return
    whole = pl.concat([mill.tables[name], read.frame.select(mill.tables[name].columns)])
    if key := repeated_key(table, whole):
        raise BindError("M2095", f"table '{name}' has the key ({key}) twice", hint="No row has been inserted.")
    mill.tables[name] = whole
    mill.journal.note("table", (name, mill.tables[name]))
