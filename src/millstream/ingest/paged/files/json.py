"""Files of JSON lines: an object on each line; a line that does not fit makes a bad row.

| | |
|---|---|
| names | are those of the columns, not case-sensitive; others are not looked at, and one that is missing is NULL |
| values | fit as in `coerce`: numbers in quotes are numbers, a number is seconds where a TIMESTAMP is wanted |
| splits | a file is cut anywhere: a split has the lines that start in it |
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.json as arrow_json

from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.types import Type
from millstream.algebra.values import value
from millstream.ingest.paged.files.formats import File, Part
from millstream.ingest.paged.files.text import NO_TEXT, TextFormat, quick_times, read_bytes, read_lines, rows_of
from millstream.ingest.rows import Rows, read_frame

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


@value("json_format")
@dataclass(frozen=True, slots=True)
class JsonFormat(TextFormat):
    def check(self, file: File) -> None:
        """Every line has its own columns."""

    def borders(self, part: Part) -> Sequence[int]:  # noqa: ARG002
        return ()

    def read_all(self, part: Part) -> Rows:
        lines = [line for line in read_bytes(part).split(b"\n") if line.strip()]
        return read_lines(lines, _Reader(self), self.schema)


@dataclass(frozen=True, slots=True)
class _Reader:
    format: JsonFormat

    def at_once(self, lines: Sequence[bytes]) -> pl.DataFrame | None:
        data, schema = b"\n".join(lines), self.format.schema
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
        if frame.height != len(lines) or any(self._otherwise(column, data) for column in frame):
            return None
        frame.columns = list(schema.names)
        rows = read_frame(quick_times(frame, schema), schema, self.format.required)
        return None if rows.bad.height else rows.frame

    def _spelled(self, first: Any) -> dict[str, tuple[str, Any]]:
        """How the first line writes the name of each column, and its value there."""
        if not isinstance(first, dict):
            raise ValueError("not an object")
        lower = {name.lower(): (name, value) for name, value in first.items()}
        return {a.name: lower.get(a.name.lower(), (a.name, None)) for a in self.format.schema}

    def _otherwise(self, column: pl.Series, data: bytes) -> bool:
        """Whether a column has NULLs where a line may write its name in another way."""
        if not column.null_count():
            return False
        quoted = re.escape(json.dumps(column.name, ensure_ascii=False).encode())
        alike = re.findall(quoted, data, re.IGNORECASE)
        return b"\\u" in data or len(alike) != data.count(json.dumps(column.name, ensure_ascii=False).encode())

    def one_by_one(self, lines: Sequence[bytes]) -> Rows:
        values = [_values(line, self.format.schema) for line in lines]
        return rows_of(lines, values, self.format.schema, self.format.required)


def _arrow_type(a: Attribute, value: Any) -> Any:
    """The type to read a column as, which for times depends on how they are written."""
    if a.type in _ARROW:
        return _ARROW[a.type]
    return pa.float64() if isinstance(value, float) else pa.int64() if isinstance(value, int) else pa.string()


def _values(line: bytes, schema: Schema) -> list[Any] | str:
    try:
        text = line.decode()
        made = json.loads(text)
        json.dumps(made, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except UnicodeError:
        return NO_TEXT
    except (ValueError, RecursionError) as error:
        return f"malformed JSON: {getattr(error, 'msg', error)}"
    if not isinstance(made, dict):
        return "not a JSON object"
    lower = {name.lower(): value for name, value in made.items()}
    return [lower.get(a.name.lower()) for a in schema]
