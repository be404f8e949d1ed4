"""What arrives at a source, in any form, as one table of rows and the punctuations at their places among them.

An element is a line of text (a tuple, or a pattern in brackets), a pattern, a batch of punctuations, rows in any form
that `rows` reads, or rows with punctuations among them. Rows that do not fit are put apart; a pattern that does not fit
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
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type, format_value
from millstream.algebra.values import value
from millstream.errors import InputError, PatternError, did_you_mean
from millstream.ingest.placed_punctuations import PlacedPunctuations
from millstream.ingest.rows import BAD_SCHEMA, NO_BAD, Rows, read_lines, read_rows

_PYTHON: dict[Type, tuple[type, ...]] = {
    Type.BOOLEAN: (bool,),
    Type.VARCHAR: (str,),
    Type.TIMESTAMP: (datetime,),
    Type.DATE: (date,),
    Type.INTERVAL: (timedelta,),
}


@value("punctuated_rows")
@dataclass(frozen=True, slots=True)
class PunctuatedRows:
    """Rows in any readable form, and punctuations among them; position p stands after the first p rows."""

    rows: Any
    punctuations: Punctuations
    positions: Integers


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Rows that are known to fit the schema (perhaps without columns that nobody reads), punctuations among them, and
    the rows that did not fit."""

    rows: pl.DataFrame
    placed: PlacedPunctuations | None = None
    bad: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class RejectedLine:
    """A line of text that a reader before the source could not make sense of, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Arrivals:
    rows: pl.DataFrame
    placed: PlacedPunctuations
    bad: pl.DataFrame


def gather(elements: Iterable[Any], schema: Schema, required: Sequence[str] = ()) -> Arrivals:
    """All elements, in order."""
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
            if (pattern := read_element(element, self.schema)) is None:
                self.lines.append(element)
                return
            element = pattern
        self._end_lines()
        if isinstance(element, RejectedLine):
            self.bad.append(pl.DataFrame([(element.text, element.reason)], schema=BAD_SCHEMA, orient="row"))
            return
        if isinstance(element, Pattern):
            self.patterns.append((self.height, check_pattern(element, self.schema)))
            return
        self._end_patterns()
        if isinstance(element, CheckedRows):
            self._take_checked(element)
        elif isinstance(element, PunctuatedRows):
            self._take_punctuated(element)
        elif isinstance(element, Punctuations):
            check_punctuations(element, self.schema)
            self.placed.append(PlacedPunctuations.at(self.height, element))
        else:
            self._add(read_rows(element, self.schema, self.required))

    def _take_checked(self, element: CheckedRows) -> None:
        if element.rows.height:
            self.frames.append(element.rows)
        if element.bad is not None:
            self.bad.append(element.bad)
        if element.placed is not None:
            self.placed.append(element.placed.moved(self.height))
        self.height += element.rows.height

    def _take_punctuated(self, element: PunctuatedRows) -> None:
        check_punctuations(element.punctuations, self.schema)
        positions = np.asarray(element.positions, dtype=np.int64)
        rows = read_rows(element.rows, self.schema, self.required)
        if len(positions) != len(element.punctuations):
            raise InputError("M5011", f"{len(element.punctuations)} punctuations but {len(positions)} positions")
        if len(positions) and (positions[0] < 0 or positions[-1] > rows.given or (np.diff(positions) < 0).any()):
            hint = f"They must ascend, from 0 to the {rows.given} rows."
            raise InputError("M5011", "positions of punctuations are not places among the rows", hint=hint)
        start = self.height
        self._add(rows)
        if rows.index is not None:
            positions = np.searchsorted(rows.index, positions)
        self.placed.append(PlacedPunctuations(element.punctuations, start + positions))

    def _add(self, rows: Rows) -> None:
        if rows.frame.height:
            self.frames.append(rows.frame)
        if rows.bad.height:
            self.bad.append(rows.bad)
        self.height += rows.frame.height

    def _end_lines(self) -> None:
        if self.lines:
            self._end_patterns()
            self._add(read_lines(self.lines, self.schema, self.required))
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
        bad = pl.concat([NO_BAD, *self.bad]) if self.bad else NO_BAD
        return Arrivals(rows, PlacedPunctuations.interleave(self.placed), bad)


def read_element(line: str, schema: Schema) -> Pattern | None:
    """The punctuation that a line of text writes, or None if it is a tuple."""
    text = line.strip()
    if text.startswith("["):
        return parse_pattern(text, schema)
    for brackets, what in (("{}", "a prod"), ("()", "a herald")):
        if text.startswith(brackets[0]) and text.endswith(brackets[1]):
            hint = f"Quote the first value if a tuple is meant that starts with '{brackets[0]}'."
            raise InputError("M5012", f"{text[:80]} is {what}, which streams do not take yet", hint=hint)
    return None


def check_pattern(pattern: Pattern, schema: Schema) -> Pattern:
    """The pattern, if its attributes and values fit the schema."""
    for name, restriction in pattern.items:
        type_ = _type(name, schema)
        for said in (*restriction.values, restriction.lo, restriction.hi):
            if said is not None and not _fits(said, type_):
                message = f"column '{name}': {format_value(said)} is not a value of type {type_.value}"
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
    if isinstance(value, bool) or type_ is Type.BOOLEAN:
        return isinstance(value, bool) and type_ is Type.BOOLEAN
    if type_.is_integer:
        return isinstance(value, int)
    if type_.is_numeric:
        return isinstance(value, int | float)
    if isinstance(value, datetime) and (type_ is Type.DATE or value.tzinfo is not None):
        return False
    return isinstance(value, _PYTHON.get(type_, ()))
