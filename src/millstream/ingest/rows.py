"""Rows from outside as a page: text lines, Python sequences and mappings, Polars frames, Arrow tables.

Nothing here raises. A row that does not fit the schema (wrong number of values, a value of another type or out of
range, an unknown column, NULL for a timestamp or a key) becomes a bad row: its text and the reason.

>>> schema = Schema.of(("k", Type.BIGINT), ("x", Type.DOUBLE))
>>> rows = read_lines(["1 | 2.5", "one | 2.5", "3"], schema)
>>> rows.frame.rows(), rows.index.tolist()
([(1, 2.5)], [0])
>>> rows.bad.rows()
[('one | 2.5', "column 'k': 'one' is not a value of type BIGINT"), ('3', 'expected 2 values, found 1')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type, escaped
from millstream.errors import InputError, did_you_mean, reason_of
from millstream.ingest.coerce import Column, coerce, coerce_values, in_range, inside
from millstream.ingest.lines import parse_line, write_line
from millstream.ingest.placed_punctuations import TIME_LIMIT

BAD_SCHEMA = {"input": pl.String(), "reason": pl.String()}
NO_BAD = pl.DataFrame(schema=BAD_SCHEMA)
_ARROW_METHODS = ("__arrow_c_stream__", "__arrow_c_array__")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that fit, with the schema's visible columns; the input position of each (None if all fit); the bad rows;
    the number of input rows; the input positions of the bad rows."""

    frame: pl.DataFrame
    index: Integers | None
    bad: pl.DataFrame
    given: int
    bad_places: tuple[int, ...] = ()


def check_rows(name: str, given: Any) -> Any:
    """Return rows that a program inserts, a frame of another library as one that can be read; raise InputError for
    what is not rows at all."""
    if getattr(given, "isStreaming", None) is True:
        hint = f"mill.stream('{name}', frame) declares it as a stream"
        raise InputError("M5013", f"expected rows for '{name}', found a streaming DataFrame", hint=hint)
    arrow = any(hasattr(given, method) for method in _ARROW_METHODS)
    if isinstance(given, Mapping) and given and all(isinstance(value, list) for value in given.values()):
        hint = f"mill.insert('{name}', polars.DataFrame(…)), or a dict for each row"
        raise InputError("M5013", f"expected rows for '{name}', found a dict of columns", hint=hint)
    if not (arrow or isinstance(given, pl.LazyFrame) or _iterates(given)) or isinstance(
        given, str | bytes | bytearray | type
    ):
        hint = f"rows are tuples, dicts, a Polars frame or an Arrow table: mill.insert('{name}', [(1, 2), …])"
        raise InputError("M5013", f"expected rows for '{name}', found {type(given).__name__}", hint=hint)
    if not arrow and getattr(given, "ndim", 1) not in (1, 2):
        hint = "an array of two dimensions, or of one for a single row"
        raise InputError("M5013", f"expected rows for '{name}', found {given.ndim} dimensions", hint=hint)
    return _converted(name, given) if arrow and not isinstance(given, pl.DataFrame) else given


def _iterates(given: Any) -> bool:
    """Return whether values can be iterated over: a column of Spark has the method, which refuses."""
    try:
        return iter(given) is not None
    except TypeError:
        return False


def _converted(name: str, given: Any) -> Any:
    """Return a frame of another library as a Polars frame; one of pandas with a column that Polars does not have, as
    text with half a surrogate pair or values of several types, as rows."""
    try:
        # one of Spark has no time zone for its own stream of Arrow pages
        return pl.DataFrame(given.toArrow() if hasattr(given, "toArrow") else given)
    except Exception as error:
        if hasattr(given, "notna") and hasattr(given, "to_dict"):
            return given.astype(object).where(given.notna(), None).to_dict("records")
        message = f"cannot read the rows for '{name}': {reason_of(error)}"
        raise InputError("M5013", message, hint="a Polars frame, or a tuple or a dict for each row") from error


def read_rows(given: Any, schema: Schema, required: Iterable[str] = ()) -> Rows:
    """Read rows in any of the accepted forms. One mapping, or one sequence of plain values, is one row."""
    if isinstance(given, pl.LazyFrame):
        given = given.collect()
    if any(hasattr(given, method) for method in _ARROW_METHODS):
        given = pl.DataFrame(given)
    if isinstance(given, pl.DataFrame):
        return read_frame(given, schema, required)
    if isinstance(given, str):
        return read_lines([given], schema, required)
    if isinstance(given, Mapping):
        return read_values([given], schema, required)
    values = list(given) if isinstance(given, Iterable) else [given]
    if values and all(isinstance(value, str) for value in values):
        return read_lines(values, schema, required)
    if values and not any(isinstance(value, Mapping) or _is_sequence(value) for value in values):
        values = [values]
    return read_values(values, schema, required)


def read_lines(lines: Sequence[str], schema: Schema, required: Iterable[str] = ()) -> Rows:
    """Read text lines `a | b | c`."""
    return rows_of([_parsed(line, schema) for line in lines], schema, required, lines.__getitem__)


def _parsed(line: str, schema: Schema) -> Sequence[Any] | str:
    try:
        return parse_line(line, schema)
    except ValueError as error:
        return str(error)


def read_values(values: Sequence[Any], schema: Schema, required: Iterable[str] = ()) -> Rows:
    """Read sequences by position, or mappings by column name (a missing column is NULL)."""
    width = len(schema)
    made = [_by_position(row, schema, width) for row in values]
    return rows_of(made, schema, required, lambda at: _text(values[at]))


def _is_sequence(row: Any) -> bool:
    """Return whether a row is a sequence of values: a record or a row of an array is one too."""
    return isinstance(row, list | tuple | np.void | np.ma.mvoid) or getattr(row, "ndim", 0) == 1


def _by_position(row: Any, schema: Schema, width: int) -> Sequence[Any] | str:
    """Return the values of a row in the order of the schema, or the reason why it is bad."""
    if _is_sequence(row):
        return row if len(row) == width else f"expected {width} values, found {len(row)}"
    if not isinstance(row, Mapping):
        return f"expected {width} values, found {type(row).__name__}"
    mapped = {_column(str(name), schema): value for name, value in row.items()}
    if len(mapped) < len(row):
        return "a column is given twice"
    unknown = next((name for name in mapped if name not in schema), None)
    return [mapped.get(a.name) for a in schema] if unknown is None else _unknown(unknown, schema)


def read_frame(frame: pl.DataFrame, schema: Schema, required: Iterable[str] = ()) -> Rows:
    """Read a frame whose columns are found by name (a missing column is NULL)."""
    if _fits(frame, schema, required):
        return Rows(frame, None, NO_BAD, frame.height)
    named = {_column(name, schema): name for name in frame.columns}
    unknown = next((name for name in named if name not in schema), None)
    wrong: dict[int, str] = {}
    columns: dict[str, pl.Series] = {}
    if unknown is not None or len(named) < len(frame.columns):
        reason = "a column is given twice" if unknown is None else _unknown(unknown, schema)
        wrong = dict.fromkeys(range(frame.height), reason)
    for a in schema:
        if (wrong and len(wrong) == frame.height) or a.name not in named:
            columns[a.name] = pl.Series([None], dtype=a.type.polars).new_from_index(0, frame.height)
            continue
        columns[a.name] = _noted(coerce(frame.get_column(named[a.name]), a.type), a.name, wrong)
    return _split(columns, frame.height, schema, required, wrong, lambda at: _row_text(frame, at))


def _fits(frame: pl.DataFrame, schema: Schema, required: Iterable[str]) -> bool:
    """True if the frame needs no change: the schema's columns and types, times in range, no NULL where required."""
    if frame.columns != list(schema.names) or frame.dtypes != [a.type.polars for a in schema]:
        return False
    if any(frame.get_column(name).null_count() for name in required):
        return False
    if not all(map(in_range, frame)):
        return False
    if schema.time is None or schema.type_of(schema.time) is not Type.BIGINT or not frame.height:
        return True
    lowest, highest = frame.get_column(schema.time).min(), frame.get_column(schema.time).max()
    return isinstance(lowest, int) and isinstance(highest, int) and lowest > -TIME_LIMIT and highest < TIME_LIMIT


def rows_of(
    rows: Sequence[Sequence[Any] | str], schema: Schema, required: Iterable[str], text: Callable[[int], str]
) -> Rows:
    """Return rows from the values of each row in the order of the schema, or from the reason why it is bad. `text` is
    the input at a place."""
    wrong = {at: row for at, row in enumerate(rows) if isinstance(row, str)}
    missing = [None] * len(schema)
    turned = list(zip(*(missing if isinstance(row, str) else row for row in rows), strict=True)) or [()] * len(schema)
    pairs = zip(schema, turned, strict=True)
    columns = {a.name: _noted(coerce_values(values, a.type), a.name, wrong) for a, values in pairs}
    return _split(columns, len(rows), schema, required, wrong, text)


def _noted(column: Column, name: str, wrong: dict[int, str]) -> pl.Series:
    """Return the values; add the reasons why some did not fit to those of other columns."""
    for at, reason in column.wrong.items():
        wrong.setdefault(at, f"column '{name}': {reason}")
    return column.values


def _split(
    columns: dict[str, pl.Series],
    height: int,
    schema: Schema,
    required: Iterable[str],
    wrong: dict[int, str],
    text: Callable[[int], str],
) -> Rows:
    """Separate the bad rows: a value does not fit, or a required one is NULL."""
    for name in required:
        if columns[name].null_count():
            for at in columns[name].is_null().arg_true():
                wrong.setdefault(at, f"column '{name}' must not be NULL")
    if schema.time is not None and schema.type_of(schema.time) is Type.BIGINT:
        outside = ~columns[schema.time].is_between(-TIME_LIMIT, TIME_LIMIT, closed="none")
        for at in outside.fill_null(False).arg_true():
            wrong.setdefault(at, f"column '{schema.time}': {columns[schema.time][at]} is out of range for a time")
    frame = pl.DataFrame([series.alias(name) for name, series in columns.items()])
    if not wrong:
        return Rows(frame, None, NO_BAD, height)
    places = sorted(wrong)
    good = np.ones(height, dtype=np.bool_)
    good[places] = False
    shown = [[escaped(text(at)) for at in places], [escaped(wrong[at]) for at in places]]
    bad = pl.DataFrame(shown, schema=BAD_SCHEMA)
    kept = np.flatnonzero(good).astype(np.int64)
    return Rows(frame.filter(pl.Series(good)), kept, bad, height, tuple(places))


def _column(name: str, schema: Schema) -> str:
    """Return the schema's spelling of a column name; names are not case-sensitive."""
    return name if name in schema else name.lower()


def _unknown(name: str, schema: Schema) -> str:
    return f"unknown column '{name}' ({did_you_mean(name, schema.names)})"


def texts_of(frame: pl.DataFrame, places: Iterable[int]) -> list[str]:
    """Return the texts of the rows at these places."""
    return [_row_text(frame, at) for at in places]


def named_texts(frame: pl.DataFrame, places: Iterable[int]) -> list[str]:
    """Return the texts of the rows at these places, with the names of the columns."""
    return [_text(dict(zip(frame.columns, _row_values(frame, at), strict=True))) for at in places]


def _row_text(frame: pl.DataFrame, at: int) -> str:
    return _text(_row_values(frame, at))


def _row_values(frame: pl.DataFrame, at: int) -> list[Any]:
    """The values of a row; a time that Python does not have is its count of units."""
    row = [frame.get_column(name).slice(at, 1) for name in frame.columns]
    outside = [not inside(value).all() for value in row]
    return [(value.to_physical() if odd else value)[0] for value, odd in zip(row, outside, strict=True)]


def _text(row: Any) -> str:
    if isinstance(row, Mapping):
        return ", ".join(f"{name} = {write_line([value])}" for name, value in row.items())
    return write_line(list(row)) if _is_sequence(row) else str(row)
