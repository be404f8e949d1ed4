"""Static tables: read from files as a whole, or empty and filled by the API or a transcript.

Files are read as those of streams are. A row that does not fit is left out and reported with its number: a value that
does not fit, NULL in a column of the key or with NOT NULL, a key that appeared before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from millstream.algebra.types import format_value
from millstream.errors import InputError
from millstream.ingest.paged.connectors import connector_of
from millstream.ingest.paged.files.formats import File, Format, Part
from millstream.ingest.paged.files.listing import Listing
from millstream.ingest.paged.files.partitions import Partitioned
from millstream.ingest.paged.formats import FORMATS
from millstream.logical.catalog import TableDefinition
from millstream.options import check_names, read_options

_FILE, _ROW = "__file", "__row"
SHOWN = 3
"""Number of bad rows that a report describes."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was left out: its file, its place there (`line 7`, `row 7`), and the reason."""

    file: str
    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place} of {self.file}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TableRows:
    """`absent`: that there is no file, and where it was looked for."""

    rows: pl.DataFrame
    bad: tuple[BadRow, ...] = ()
    absent: str = ""

    def report(self, name: str) -> str:
        """A text on the rows left out, or on a table without files; empty if all is well."""
        if self.absent:
            return str(InputError("M5067", f"table '{name}' is empty: {self.absent}"))
        if not self.bad:
            return ""
        shown = [str(row) for row in self.bad[:SHOWN]] + (["…"] if len(self.bad) > SHOWN else [])
        total, number = self.rows.height + len(self.bad), len(self.bad)
        verbs = ("does", "was") if number == 1 else ("do", "were")
        head = f"table '{name}': {number:,} of {total:,} rows {verbs[0]} not fit and {verbs[1]} left out"
        return "\n  ".join([head, *shown])


def read_table(table: TableDefinition) -> TableRows:
    """Read the rows of a table, with the columns and types of its schema; raise an error if an option or the path is
    invalid, or a file lacks a column."""
    empty = pl.DataFrame(schema={attribute.name: attribute.type.polars for attribute in table.schema})
    given = {option.lower(): value for option, value in table.options.items()}
    if not given:
        return TableRows(empty)
    owner = f"table '{table.name}'"
    connector = connector_of(owner, given, FORMATS)
    kind = FORMATS[connector]
    check_names(kind.of_table, given, owner)
    if not given.get("path"):
        hint = f"WITH (connector = '{connector}', path = '…')"
        raise InputError("M5001", "a table with a connector needs a path", hint=hint)
    options = read_options(kind.of_table, given, owner)
    required = tuple(dict.fromkeys((*table.primary_key, *table.not_null)))
    format_, files = Partitioned(kind.make(table.schema, required, options)), _files(options.path)
    found = [_read(number, file, format_) for number, file in enumerate(files)]
    frame = pl.concat([_placed(empty, 0, []), *(rows for rows, _ in found)])
    bad = [row for _, rows in found for row in rows]
    if table.primary_key:
        again = ~frame.select(pl.struct(table.primary_key).is_first_distinct()).to_series()
        for (number,), rows in frame.filter(again).group_by(_FILE, maintain_order=True):
            reasons = [f"its key ({_key(table, row)}) appeared before" for row in rows.iter_rows(named=True)]
            bad += _bad(format_, files[int(str(number))], rows.get_column(_ROW).to_list(), reasons)
        frame = frame.filter(~again)
    return TableRows(frame.drop(_FILE, _ROW), tuple(bad), "" if files else Listing(options.path).absent)


def repeated_key(table: TableDefinition, rows: pl.DataFrame) -> str:
    """The first key that appears twice in the rows of a table; empty if there is none."""
    if not table.primary_key or rows.is_empty():
        return ""
    again = rows.filter(~pl.struct(table.primary_key).is_first_distinct())
    return "" if again.is_empty() else _key(table, again.row(0, named=True))


def _files(path: str) -> list[File]:
    """The files of a path, in the order of their names."""
    listing = Listing(path)
    return [File(listing.path(name), size) for name, size in listing.find().items()]


def _read(number: int, file: File, format_: Format) -> tuple[pl.DataFrame, list[BadRow]]:
    """Read a file: the rows that fit, with their places, and the others."""
    format_.check(file)
    rows = format_.read_all(Part(file, 0, format_.extent(file)))
    places = {*rows.bad_places}
    kept = [at for at in range(rows.given) if at not in places]
    return _placed(rows.frame, number, kept), _bad(format_, file, rows.bad_places, rows.bad.get_column("reason"))


def _bad(format_: Format, file: File, places: Sequence[int], reasons: Iterable[str]) -> list[BadRow]:
    where = format_.where(Part(file, 0, format_.extent(file)), places) if places else []
    return [BadRow(Path(file.path).name, *row) for row in zip(where, reasons, strict=True)]


def _placed(frame: pl.DataFrame, file: int, rows: list[int]) -> pl.DataFrame:
    return frame.with_columns(pl.lit(file, pl.Int64).alias(_FILE), pl.Series(_ROW, rows, pl.Int64))


def _key(table: TableDefinition, row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {format_value(row[name])}" for name in table.primary_key)
