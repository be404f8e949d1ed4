"""CSV files: each is read as a whole, and a line that does not fit becomes a bad row.

| | |
|---|---|
| header | names the columns, not case-sensitive, in any order, each of the stream's once; others are ignored |
| no header | the stream's columns, in order |
| NULL | an empty value, the text of the option `null`, and the text NULL in columns other than VARCHAR |
| a bad row | the wrong number of values, a value that does not fit, a quote that is not closed |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from millstream.algebra.types import Type
from millstream.algebra.values import record
from millstream.errors import InputError
from millstream.ingest.paged.files.csv_lines import even, fields, line_numbers, records
from millstream.ingest.paged.files.formats import File, Part, positions, unreadable
from millstream.ingest.paged.files.other_kinds import CONVERTED, check_text
from millstream.ingest.paged.files.text import (
    NO_TEXT,
    TextFormat,
    infinite,
    quick_times,
    read_bytes,
    read_lines,
)
from millstream.ingest.rows import Rows, read_frame

_DIRECT = {
    Type.BOOLEAN: pl.Boolean(),
    Type.INT: pl.Int64(),
    Type.BIGINT: pl.Int64(),
    Type.REAL: pl.Float64(),
    Type.DOUBLE: pl.Float64(),
    Type.DECIMAL: pl.Float64(),
}
"""Types that Polars parses as we do where it parses at all; values of other types are read as text."""


_DELIMITERS = {";": ";", "\t": "tab", "|": "|", ",": ",", ":": ":", " ": " "}
"""Characters that often separate columns, as the option is written."""
LONGEST_HEADER = 1 << 16
"""Bytes of a file that are searched for its header."""


@record("csv_format")
class CsvFormat(TextFormat):
    header: bool = True
    delimiter: str = ","
    null: str = ""

    def check(self, file: File) -> None:
        check_text(file)
        if self.header and file.size:
            start = read_bytes(Part(file, 0, min(file.size, LONGEST_HEADER)))
            self._reader(file, records(start)[:1])

    def rows(self, file: File) -> int:
        return max(TextFormat.rows(self, file) - self.header, 0)

    def borders(self, part: Part) -> None:  # noqa: ARG002
        return None

    def read_all(self, part: Part) -> Rows:
        lines = records(read_bytes(part))
        reader = self._reader(part.file, lines)
        return read_lines(lines[1:] if self.header else lines, reader, self)

    def lines(self, part: Part) -> list[bytes]:
        return records(read_bytes(part))[1 if self.header else 0 :]

    def prod_text(self, line: bytes) -> str | None:
        text = line.strip()
        return text.decode("utf-8", "replace") if text.startswith(b"{") and text.endswith(b"}") else None

    def numbers(self, data: bytes) -> list[int]:
        return line_numbers(data)[1 if self.header else 0 :]

    def _reader(self, file: File, lines: Sequence[bytes]) -> _Reader:
        """Return the reader of a file, by its first line."""
        names = list(self.schema.names)
        if self.header and lines:
            try:
                names = [name.strip() for name, _ in fields(lines[0].decode("utf-8", "replace"), self.delimiter)]
            except ValueError as error:
                raise unreadable(file, f"In its first line, {error}") from None
        if len(names) == 1:
            self._check_delimiter(file, names[0])
        try:
            return _Reader(self, len(names), list(positions(file, names, self.schema).values()))
        except InputError:
            if any("\ufffd" in name for name in names):
                message = f"the first line of file '{file.path}' is not UTF-8"
                raise InputError("M5046", message, hint=CONVERTED) from None
            raise

    def _check_delimiter(self, file: File, header: str) -> None:
        """Raise InputError if another delimiter finds columns of the stream in the first line."""
        for delimiter, written in _DELIMITERS.items():
            found = {name.strip().strip('"').lower() for name in header.split(delimiter)}
            missing = [name for name in self.schema.names if name != header.lower()]
            if missing and delimiter in header and not found.isdisjoint(missing):
                hint = f"the columns are separated by another character: WITH (delimiter = '{written}')"
                raise InputError("M5041", f"file '{file.path}' has no column '{missing[0]}'", hint=hint)


@dataclass(frozen=True, slots=True)
class _Reader:
    format: CsvFormat
    width: int
    places: list[int]
    """Position in a line of each column of the schema."""

    def at_once(self, lines: Sequence[bytes]) -> Rows | None:
        schema = self.format.schema
        if not even(lines, self.format.delimiter.encode(), self.width):
            return None  # Polars would fill missing values at the end of a line
        types: list[pl.DataType] = [pl.String()] * self.width
        for a, place in zip(schema, self.places, strict=True):
            types[place] = _DIRECT.get(a.type, pl.String())
        try:
            frame = pl.read_csv(
                b"\n".join(lines),
                has_header=False,
                schema={str(at): type_ for at, type_ in enumerate(types)},
                separator=self.format.delimiter,
                null_values=[self.format.null] if self.format.null else None,
            )
        except pl.exceptions.PolarsError:
            return None
        frame = frame.select(pl.col(str(place)).alias(a.name) for a, place in zip(schema, self.places, strict=True))
        if infinite(frame):
            return None
        rows = read_frame(quick_times(frame, schema), schema, self.format.required)
        return rows if frame.height == len(lines) and not rows.bad.height else None

    def values(self, line: bytes) -> list[Any] | str:
        try:
            values = fields(line.decode(), self.format.delimiter)
        except UnicodeDecodeError:
            return NO_TEXT
        except ValueError as error:
            return str(error)
        if len(values) != self.width:
            return f"expected {self.width} values, found {len(values)}"
        picked = zip(self.places, self.format.schema, strict=True)
        return [self._value(*values[place], a.type) for place, a in picked]

    def _value(self, text: str, quoted: bool, type_: Type) -> str | None:
        empty = not text and (not quoted or type_ is not Type.VARCHAR)
        return None if empty or (self.format.null and text == self.format.null) else text
