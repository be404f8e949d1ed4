"""Arriving elements of any form as one table of rows, with the punctuations at their positions among them.

An element is a line of text (a tuple, or a pattern in brackets), a pattern, a batch of punctuations, rows in any form
that `rows` reads, or rows with punctuations among them. Bad rows are separated. A pattern that does not fit the schema
raises PatternError, before anything is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.early import Prod, parse_prod, stream_prod
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type, escaped, format_value
from millstream.algebra.values import record
from millstream.errors import InputError, PatternError, did_you_mean
from millstream.ingest.placed_punctuations import PlacedPunctuations
from millstream.ingest.rows import BAD_SCHEMA, NO_BAD, read_lines, read_rows

_PYTHON: dict[Type, tuple[type, ...]] = {
    Type.INT: (int,),
    Type.BIGINT: (int,),
    Type.REAL: (int, float),
    Type.DOUBLE: (int, float),
    Type.DECIMAL: (int, float),
    Type.VARCHAR: (str,),
    Type.DATE: (date,),
    Type.INTERVAL: (timedelta,),
}
"""Python types of the values of a type; `_fits` treats BOOLEAN and TIMESTAMP by itself."""


@record("punctuated_rows")
class PunctuatedRows:
    """Rows in any readable form, and punctuations among them; position p is the place after the first p rows."""

    rows: Any
    punctuations: Punctuations
    positions: Integers


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Rows known to fit the schema (perhaps without columns that no query reads), punctuations among them, and the bad
    rows."""

    rows: pl.DataFrame
    placed: PlacedPunctuations | None = None
    bad: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class RejectedLine:
    """A line of text that a reader before the source could not parse, and the reason."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Arrivals:
    """All rows, the punctuations among them, and the bad rows."""

    rows: pl.DataFrame
    placed: PlacedPunctuations
    bad: pl.DataFrame


def gather(elements: Iterable[Any], schema: Schema, required: Sequence[str] = ()) -> Arrivals:
    """Gather all elements, in order."""
    gathering = _Gathering(schema, required)
    for element in elements:
        gathering.take(element)
    return gathering.done()


@dataclass(slots=True)
class _Gathering:
    schema: Schema
    required: Sequence[str]
    frames: list[pl.DataFrame] = field(default_factory=list)
    placed: list[PlacedPunctuations] = field(default_factory=list)
    bad: list[pl.DataFrame] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    patterns: list[tuple[int, Pattern]] = field(default_factory=list)
    height: int = 0

    def take(self, element: Any) -> None:
        if isinstance(element, str):
            found = read_element(element, self.schema)
            if found is None:
                self.lines.append(element)
                return
            if isinstance(found, Prod):
                hint = f"feed it by itself: mill.insert(…, '{element.strip()[:40]}')"
                raise InputError("M5012", f"{element.strip()[:80]} is a prod, which has no place among rows", hint=hint)
            element = found
        self._end_lines()
        if isinstance(element, RejectedLine):
            self.bad.append(
                pl.DataFrame([(escaped(element.text), escaped(element.reason))], schema=BAD_SCHEMA, orient="row")
            )
            return
        if isinstance(element, Pattern):
            self.patterns.append((self.height, check_pattern(element, self.schema)))
            return
        self._end_patterns()
        if isinstance(element, CheckedRows):
            if element.placed is not None:
                self.placed.append(element.placed.moved(self.height))
            self._add(element.rows, element.bad)
        elif isinstance(element, PunctuatedRows):
            self._take_punctuated(element)
        elif isinstance(element, Punctuations):
            check_punctuations(element, self.schema)
            self.placed.append(PlacedPunctuations.at(self.height, element))
        else:
            rows = read_rows(element, self.schema, self.required)
            self._add(rows.frame, rows.bad)

    def _take_punctuated(self, element: PunctuatedRows) -> None:
        check_punctuations(element.punctuations, self.schema)
        positions = np.asarray(element.positions, dtype=np.int64)
        rows = read_rows(element.rows, self.schema, self.required)
        if len(positions) != len(element.punctuations):
            raise InputError("M5011", f"{len(element.punctuations)} punctuations but {len(positions)} positions")
        if len(positions) and (positions[0] < 0 or positions[-1] > rows.given or (np.diff(positions) < 0).any()):
            hint = f"They must ascend, from 0 to the {rows.given} rows."
            raise InputError("M5011", "positions of punctuations are not positions among the rows", hint=hint)
        start = self.height
        self._add(rows.frame, rows.bad)
        if rows.index is not None:
            positions = np.searchsorted(rows.index, positions)
        self.placed.append(PlacedPunctuations(element.punctuations, start + positions))

    def _add(self, rows: pl.DataFrame, bad: pl.DataFrame | None) -> None:
        if rows.height:
            self.frames.append(rows)
        if bad is not None and bad.height:
            self.bad.append(bad)
        self.height += rows.height

    def _end_lines(self) -> None:
        if self.lines:
            self._end_patterns()
            rows = read_lines(self.lines, self.schema, self.required)
            self._add(rows.frame, rows.bad)
            self.lines = []

    def _end_patterns(self) -> None:
        if self.patterns:
            positions = np.array([position for position, _ in self.patterns], dtype=np.int64)
            self.placed.append(PlacedPunctuations(Punctuations.of(pattern for _, pattern in self.patterns), positions))
            self.patterns = []

    def done(self) -> Arrivals:
        self._end_lines()
        self._end_patterns()
        if len(self.frames) == 1:
            rows = self.frames[0]
        else:
            rows = pl.concat([pl.DataFrame(schema={a.name: a.type.polars for a in self.schema}), *self.frames])
        bad = pl.concat([NO_BAD, *self.bad], how="diagonal") if self.bad else NO_BAD
        return Arrivals(rows, PlacedPunctuations.interleave(self.placed), bad)


def read_element(line: str, schema: Schema) -> Pattern | Prod | None:
    """Return the punctuation or the prod on a line of text, or None if the line is a tuple."""
    text = line.strip()
    if text.startswith("["):
        return parse_pattern(text, schema)
    if text.startswith("{") and text.endswith("}"):
        return stream_prod(parse_prod(text, schema), schema)
    if text.startswith("(") and text.endswith(")"):
        hint = "Quote the first value of a tuple that starts with '('."
        raise InputError("M5012", f"{text[:80]} is a herald, which streams do not accept yet", hint=hint)
    return None


def check_pattern(pattern: Pattern, schema: Schema) -> Pattern:
    """Return the pattern; raise PatternError if its attributes or values do not fit the schema."""
    for name, restriction in pattern.items:
        type_ = _type(name, schema)
        for value in (*restriction.values, restriction.lo, restriction.hi):
            if value is not None and not _fits(value, type_):
                message = f"column '{name}': {format_value(value)} is not a value of type {type_.value}"
                raise PatternError("M4007", message, hint=f"'{name}' is of type {type_.value}.")
    return pattern


def check_punctuations(punctuations: Punctuations, schema: Schema) -> None:
    for group in punctuations.parts.groups:
        for name, column in group.columns.items():
            type_ = _type(name, schema)
            wanted = pl.Int64() if type_.is_integer else pl.Float64() if type_.is_numeric else type_.polars
            if column.dtype != wanted and not (wanted == pl.Float64 and column.dtype == pl.Int64):
                raise PatternError("M4007", f"column '{name}': values of type {column.dtype} do not fit {type_.value}")
    for _, pattern in punctuations.parts.odd:
        check_pattern(pattern, schema)


def _type(name: str, schema: Schema) -> Type:
    if name not in schema:
        raise PatternError("M4004", f"unknown column '{name}'", hint=did_you_mean(name, schema.names))
    return schema.type_of(name)


def _fits(value: Any, type_: Type) -> bool:
    if isinstance(value, bool):
        return type_ is Type.BOOLEAN
    if isinstance(value, datetime):
        return type_ is Type.TIMESTAMP and value.tzinfo is None
    if isinstance(value, str) and escaped(value) != value:
        return False
    return isinstance(value, _PYTHON.get(type_, ()))
