"""Static tables: read from a file as a whole, or empty and filled by the API or a transcript."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from millstream.algebra.schema import Schema
from millstream.errors import InputError, did_you_mean

READERS: Mapping[str, Callable[[str], pl.DataFrame]] = {
    "csv": pl.read_csv,
    "parquet": pl.read_parquet,
    "json": pl.read_ndjson,
}


def read_table(schema: Schema, options: Mapping[str, str]) -> pl.DataFrame:
    """Return the table's rows with the schema's columns and types."""
    types = {attribute.name: attribute.type.polars for attribute in schema}
    connector = options.get("connector")
    if connector is None:
        return pl.DataFrame(schema=types)
    path = options.get("path")
    if path is None:
        raise InputError("M5001", "a table with a connector needs a path", hint="WITH (connector = 'csv', path = '…')")
    if connector.lower() not in READERS:
        raise InputError("M5002", f"unknown connector '{connector}'", hint=did_you_mean(connector, READERS))
    try:
        frame = READERS[connector.lower()](path)
        return frame.rename({c: c.lower() for c in frame.columns}).select(
            pl.col(name).cast(type_) for name, type_ in types.items()
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise InputError("M5003", f"cannot read '{path}' as {connector}", detail=f"{reason}.") from error
