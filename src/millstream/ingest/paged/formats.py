"""The file formats by the name of their connector, with the options of streams and of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.algebra.schema import Schema
from millstream.ingest.paged.files.csv import CsvFormat
from millstream.ingest.paged.files.formats import Format
from millstream.ingest.paged.files.json import JsonFormat
from millstream.ingest.paged.files.parquet import ParquetFormat
from millstream.ingest.paged.options import (
    CsvOptions,
    CsvTableOptions,
    FileOptions,
    JsonOptions,
    TableOptions,
    TextFileOptions,
)


@dataclass(frozen=True, slots=True)
class FileConnector:
    """`make` returns the format for a schema, the columns that must not be NULL, and the options."""

    make: Callable[[Schema, tuple[str, ...], Any], Format]
    of_stream: type[FileOptions] = FileOptions
    of_table: type[TableOptions] = TableOptions


FORMATS = {
    "csv": FileConnector(
        lambda schema, required, given: CsvFormat(
            schema, required, _prods(given), given.header, given.delimiter, given.null
        ),
        CsvOptions,
        CsvTableOptions,
    ),
    "json": FileConnector(lambda schema, required, given: JsonFormat(schema, required, _prods(given)), JsonOptions),
    "parquet": FileConnector(lambda schema, required, _: ParquetFormat(schema, required)),
}


def _prods(given: FileOptions | TableOptions) -> bool:
    return isinstance(given, TextFileOptions) and given.prods
