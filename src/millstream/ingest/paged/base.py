"""The page source of a stream, by its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millstream.algebra.schema import Schema
from millstream.errors import InputError, did_you_mean
from millstream.ingest.generators import GENERATORS
from millstream.ingest.paged.csv_files import CsvFormat
from millstream.ingest.paged.file_source import FileSource
from millstream.ingest.paged.formats import Format
from millstream.ingest.paged.generated import open_generated
from millstream.ingest.paged.json_files import JsonFormat
from millstream.ingest.paged.options import CsvOptions, FileOptions, read_options
from millstream.ingest.paged.parquet_files import ParquetFormat
from millstream.ingest.paged.pieces import Offset, PagedSource, Piece, PieceRows
from millstream.ingest.paged.replay import Replay

__all__ = ["CONNECTORS", "Offset", "PagedSource", "Piece", "PieceRows", "open_paged"]

FILES = ("csv", "json", "parquet")
CONNECTORS = (*FILES, *GENERATORS)


def open_paged(name: str, schema: Schema, options: Mapping[str, str], required: Sequence[str]) -> PagedSource:
    """The source of a stream. `required` columns must not be NULL: a row where one is NULL is a bad row.

    A connector, an option, a path or a column that cannot be raises InputError, OptionError or BindError.
    """
    given = {option.lower(): value for option, value in options.items()}
    connector = given.pop("connector", "").lower()
    if connector in GENERATORS:
        return open_generated(name, schema, connector, given)
    if connector not in FILES:
        hint = did_you_mean(connector, CONNECTORS)
        raise InputError("M5002", f"unknown connector '{connector}' of stream '{name}'", hint=hint)
    if not given.get("path"):
        hint = f"WITH (connector = '{connector}', path = '…')"
        raise InputError("M5001", f"the connector '{connector}' of stream '{name}' needs a path", hint=hint)
    return _files(name, schema, connector, given, tuple(required))


def _files(
    name: str, schema: Schema, connector: str, given: Mapping[str, str], required: tuple[str, ...]
) -> PagedSource:
    format_: Format
    if connector == "csv":
        read = read_options(CsvOptions, given)
        format_ = CsvFormat(schema, required, read.header, read.delimiter, read.null)
        options: FileOptions = read
    else:
        options = read_options(FileOptions, given)
        format_ = ParquetFormat(schema, required) if connector == "parquet" else JsonFormat(schema, required)
    return FileSource(format_, options, Replay.of(options.speed, schema, name))
