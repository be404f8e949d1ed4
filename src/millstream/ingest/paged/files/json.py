"""Files of JSON lines: an object on each line; a line that does not fit becomes a bad row.

| | |
|---|---|
| names | the columns: as they are spelled, else in any case; others are ignored, a missing one is NULL, and a line with
  one twice is bad |
| values | converted as in `coerce`: numbers in quotes are numbers, a number for a TIMESTAMP is seconds |
| splits | a file can be cut anywhere, unless it is compressed: a split has the lines that start in it |
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.json as arrow_json

from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type, check_unicode
from millstream.algebra.values import record
from millstream.ingest.paged.files.formats import File, Part
from millstream.ingest.paged.files.other_kinds import check_text, is_compressed
from millstream.ingest.paged.files.text import (
    NO_TEXT,
    TextFormat,
    infinite,
    quick_times,
    read_bytes,
    read_lines,
)
from millstream.ingest.rows import Rows, read_frame

LONGEST_INTEGER = 300
"""Digits of an integer that may fit a DOUBLE."""
_ARROW = {
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int64(),
    Type.BIGINT: pa.int64(),
    Type.REAL: pa.float64(),
    Type.DOUBLE: pa.float64(),
    Type.DECIMAL: pa.float64(),
    Type.VARCHAR: pa.string(),
    Type.DATE: pa.string(),
}


@record("json_format")
class JsonFormat(TextFormat):
    def check(self, file: File) -> None:
        check_text(file)  # every line has its own columns

    def borders(self, part: Part) -> Sequence[int] | None:
        return None if is_compressed(part.file) else ()

    def read_all(self, part: Part) -> Rows:
        return read_lines(self.lines(part), self, self)

    def lines(self, part: Part) -> list[bytes]:
        return [line for line in read_bytes(part).split(b"\n") if line.strip()]

    def prod_text(self, line: bytes) -> str | None:
        text = line.strip()
        if not (text.startswith(b'"{') and text.endswith(b'}"')):
            return None
        try:
            made = json.loads(text)
        except ValueError:
            return None
        return made if isinstance(made, str) else None

    def numbers(self, data: bytes) -> list[int]:
        return [number for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]

    def at_once(self, lines: Sequence[bytes]) -> Rows | None:
        data, schema = b"\n".join(lines), self.schema
        try:
            data.decode()
            names = self._spelled(json.loads(lines[0]))
            fields = [(names[a.name][0], _arrow_type(a, names[a.name][1])) for a in schema]
            table = arrow_json.read_json(
                io.BytesIO(data),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
                ),
            )
        except (ValueError, RecursionError, pa.ArrowException):
            return None
        frame = pl.DataFrame(table)
        if frame.height != len(lines) or self._otherwise(frame, data) or infinite(frame):
            return None
        frame.columns = list(schema.names)
        rows = read_frame(quick_times(frame, schema), schema, self.required)
        return None if rows.bad.height else rows

    def _spelled(self, first: Any) -> dict[str, tuple[str, Any]]:
        """Return the spelling of each column's name on the first line, and its value there."""
        if not isinstance(first, dict):
            raise ValueError("not an object")
        lower = {name.lower(): (name, value) for name, value in first.items()}
        lower |= {name.lower(): (name, first[name]) for name in self.schema.names if name in first}
        return {a.name: lower.get(a.name.lower(), (a.name, None)) for a in self.schema}

    def _otherwise(self, frame: pl.DataFrame, data: bytes) -> bool:
        """Return whether a line may spell a column differently: that matters if the column has NULLs, or is not spelled
        as in the schema."""
        pairs = zip(frame, self.schema.names, strict=True)
        doubtful = [column.name for column, name in pairs if column.null_count() or column.name != name]
        if not doubtful:
            return False
        if b"\\u" in data:
            return True
        lowered = data.lower() if all(map(str.isascii, doubtful)) else data.decode().lower().encode()
        return any(lowered.count(_quoted(name.lower())) != data.count(_quoted(name)) for name in doubtful)

    def values(self, line: bytes) -> list[Any] | str:
        try:
            text = line.decode()
        except UnicodeError:
            return NO_TEXT
        try:
            made = json.loads(text, parse_float=_number, parse_int=_integer, object_pairs_hook=_Object)
            check_unicode(json.dumps(made, ensure_ascii=False))
        except (json.JSONDecodeError, RecursionError) as error:
            return f"malformed JSON: {getattr(error, 'msg', error)}"
        except ValueError as error:
            return str(error)
        if not isinstance(made, _Object):
            return "not a JSON object"
        try:
            return [made.value(name) for name in self.schema.names]
        except ValueError as error:
            return str(error)


class _Object(dict[str, Any]):
    """A JSON object; `pairs` has all its names and values, also those of a name that is given twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def value(self, name: str) -> Any:
        """Return the value of a name, as it is spelled or else in any case; raise ValueError if there are two."""
        found = [value for given, value in self.pairs if given == name]
        found = found or [value for given, value in self.pairs if given.lower() == name.lower()]
        if len(found) > 1:
            raise ValueError(f"column '{name}' is given {len(found)} times")
        return found[0] if found else None


def _quoted(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode()


def _number(text: str) -> float | str:
    """Return a number, or its text if it is out of range: the column, if it is one of the stream's, decides."""
    value = float(text)
    return text if math.isinf(value) else value


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= LONGEST_INTEGER else text


def _arrow_type(a: Attribute, value: Any) -> Any:
    """Return the type to read a column as; for times it depends on the form of their values."""
    if a.type in _ARROW:
        return _ARROW[a.type]
    return pa.float64() if isinstance(value, float) else pa.int64() if isinstance(value, int) else pa.string()
