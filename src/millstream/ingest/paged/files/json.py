"""Files of JSON lines: an object on each line; a line that does not fit becomes a bad row.

| | |
|---|---|
| names | the columns, not case-sensitive; other names are ignored, and a missing one is NULL |
| values | converted as in `coerce`: numbers in quotes are numbers, a number for a TIMESTAMP is seconds |
| splits | a file can be cut anywhere: a split has the lines that start in it |
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.json as arrow_json

from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type
from millstream.algebra.values import record
from millstream.ingest.paged.files.formats import File, Part
from millstream.ingest.paged.files.text import NO_TEXT, TextFormat, quick_times, read_bytes, read_lines
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


@record("json_format")
class JsonFormat(TextFormat):
    def check(self, file: File) -> None:
        """Accept any file: every line has its own columns."""

    def borders(self, part: Part) -> Sequence[int]:  # noqa: ARG002
        return ()

    def read_all(self, part: Part) -> Rows:
        lines = [line for line in read_bytes(part).split(b"\n") if line.strip()]
        return read_lines(lines, self, self)

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
        if frame.height != len(lines) or any(self._otherwise(column, data) for column in frame):
            return None
        frame.columns = list(schema.names)
        rows = read_frame(quick_times(frame, schema), schema, self.required)
        return None if rows.bad.height else rows

    def _spelled(self, first: Any) -> dict[str, tuple[str, Any]]:
        """Return the spelling of each column's name on the first line, and its value there."""
        if not isinstance(first, dict):
            raise ValueError("not an object")
        lower = {name.lower(): (name, value) for name, value in first.items()}
        return {a.name: lower.get(a.name.lower(), (a.name, None)) for a in self.schema}

    def _otherwise(self, column: pl.Series, data: bytes) -> bool:
        """Return whether a column has NULLs, and a line may spell its name differently."""
        if not column.null_count():
            return False
        quoted = re.escape(json.dumps(column.name, ensure_ascii=False).encode())
        alike = re.findall(quoted, data, re.IGNORECASE)
        return b"\\u" in data or len(alike) != data.count(json.dumps(column.name, ensure_ascii=False).encode())

    def values(self, line: bytes) -> list[Any] | str:
        try:
            text = line.decode()
            made = json.loads(text)
            json.dumps(made, ensure_ascii=False).encode()  # half a surrogate pair is not text
        except UnicodeError:
            return NO_TEXT
        except (ValueError, RecursionError) as error:
            return f"malformed JSON: {getattr(error, 'msg', error)}"
        if not isinstance(made, dict):
            return "not a JSON object"
        lower = {name.lower(): value for name, value in made.items()}
        return [lower.get(a.name.lower()) for a in self.schema]


def _arrow_type(a: Attribute, value: Any) -> Any:
    """Return the type to read a column as; for times it depends on the form of their values."""
    if a.type in _ARROW:
        return _ARROW[a.type]
    return pa.float64() if isinstance(value, float) else pa.int64() if isinstance(value, int) else pa.string()
