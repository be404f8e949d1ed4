"""The registry of page sources, and the source of a stream by its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from millstream.algebra.schema import Schema
from millstream.algebra.values import where_unknown
from millstream.errors import InputError, did_you_mean
from millstream.ingest.generators import GENERATORS
from millstream.ingest.paged.files.csv import CsvFormat
from millstream.ingest.paged.files.formats import Format
from millstream.ingest.paged.files.json import JsonFormat
from millstream.ingest.paged.files.parquet import ParquetFormat
from millstream.ingest.paged.files.source import FileSource
from millstream.ingest.paged.generated import open_generated
from millstream.ingest.paged.options import CsvOptions, FileOptions
from millstream.ingest.paged.replay import Replay
from millstream.ingest.paged.split import Offset, PagedSource, Split, SplitRows
from millstream.options import read_options
from millstream.registry import Registry

__all__ = ["SOURCES", "Offset", "Opener", "PagedSource", "Split", "SplitRows", "open_paged"]

Read = TypeVar("Read", bound=FileOptions)
Opener = Callable[[str, Schema, Mapping[str, str], Sequence[str]], PagedSource]
"""Opens the source of a stream by its name, its schema, the options (names in lower case, without `connector`), and the
columns that must not be NULL."""


def _files(connector: str, kind: type[Read], format_: Callable[[Schema, tuple[str, ...], Read], Format]) -> Opener:
    def opener(name: str, schema: Schema, given: Mapping[str, str], required: Sequence[str]) -> PagedSource:
        if not given.get("path"):
            hint = f"WITH (connector = '{connector}', path = '…')"
            raise InputError("M5001", f"the connector '{connector}' of stream '{name}' needs a path", hint=hint)
        options = read_options(kind, given)
        return FileSource(format_(schema, tuple(required), options), options, Replay.of(options.speed, schema, name))

    return opener


def _generator(connector: str) -> Opener:
    return lambda name, schema, given, _: open_generated(name, schema, connector, given)


SOURCES: Registry[Opener] = Registry(
    "millstream.sources",
    {
        "csv": _files("csv", CsvOptions, lambda s, r, o: CsvFormat(s, r, o.header, o.delimiter, o.null)),
        "json": _files("json", FileOptions, lambda schema, required, _: JsonFormat(schema, required)),
        "parquet": _files("parquet", FileOptions, lambda schema, required, _: ParquetFormat(schema, required)),
        **{name: _generator(name) for name in GENERATORS},
    },
)
where_unknown(SOURCES.load)  # a split may come from another process, which has imported its package


def open_paged(name: str, schema: Schema, options: Mapping[str, str], required: Sequence[str]) -> PagedSource:
    """Open the source of a stream. A row with NULL in a `required` column is a bad row.

    An invalid connector, option, path or column raises InputError, OptionError or BindError.
    """
    given = {option.lower(): value for option, value in options.items()}
    connector = given.pop("connector", "").lower()
    opener = SOURCES.get(connector)
    if opener is None:
        hint = did_you_mean(connector, SOURCES.names())
        raise InputError("M5002", f"unknown connector '{connector}' of stream '{name}'", hint=hint)
    return opener(name, schema, given, required)
