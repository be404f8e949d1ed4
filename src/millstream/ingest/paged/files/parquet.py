"""Parquet files: cut by rows, where possible between row groups; only the needed columns are read.

| | |
|---|---|
| columns | found by name, not case-sensitive; others are ignored |
| types | converted as in `coerce`; a row with a value that does not fit is bad |
| pruning | a column is left out only if all its values fit (`parquet_columns`); bad rows are written with all columns |
| rows that no reader wants | as little as possible is read of them (`parquet_wanted`) |
| replay | by the row groups' statistics of the time column; the column itself is read for one group at a time |
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.algebra.arrays import Integers
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.algebra.values import record
from millstream.errors import InputError
from millstream.ingest.coerce import coerce, coerce_values
from millstream.ingest.fitting import Fit, fit
from millstream.ingest.paged.files.formats import (
    BEFORE_ALL,
    File,
    Part,
    check_whole,
    located,
    needed,
    positions,
    unreadable,
)
from millstream.ingest.paged.files.other_kinds import check_parquet
from millstream.ingest.paged.files.parquet_columns import Columns, columns_of
from millstream.ingest.paged.files.parquet_wanted import part_reader
from millstream.ingest.paged.split import SplitRows, narrowed, selected
from millstream.ingest.paged.wanted import Wanted
from millstream.ingest.rows import Rows, read_frame, texts_of


class Footer(NamedTuple):
    """The metadata of a file."""

    borders: tuple[int, ...]
    """First rows of the row groups, and the number of rows."""
    types: dict[str, Any]
    """The Arrow types of the columns."""
    times: tuple[tuple[Any, Any] | None, ...]
    """The least and the greatest value of the time column in each row group, where known."""


@record("parquet_format")
class ParquetFormat:
    schema: Schema
    required: tuple[str, ...]
    by_row: ClassVar[bool] = True
    worth: ClassVar[int] = 200_000

    def check(self, file: File) -> None:
        try:
            self._check(file)
        except InputError:
            _footer.cache_clear()  # the file may be replaced by one of the same size
            raise

    def _check(self, file: File) -> None:
        types = self._footer(file).types
        columns = list(types)
        places = positions(file, columns, self.schema)
        for a in self.schema:
            found = types[columns[places[a.name]]]
            if not _possible(found, a.type):
                message = f"column '{a.name}' of file '{file.path}' is {found}, which cannot become {a.type.value}"
                raise InputError("M5043", message)

    def extent(self, file: File) -> int:
        return self._footer(file).borders[-1]

    def rows(self, file: File) -> int:
        return self.extent(file)

    def borders(self, part: Part) -> Sequence[int]:
        return [place for place in self._footer(part.file).borders if part.first < place < part.last]

    def first_time(self, part: Part) -> int | None:
        for first, last, _ in self._groups(part):
            known = self._times(part.file, first, last)
            known = known[known > BEFORE_ALL]
            if len(known):
                return int(known[0])
        return None

    def released(self, part: Part, until: int) -> int:
        for first, last, bounds in self._groups(part):
            if bounds is not None and bounds[1] <= until:
                continue
            late = self._times(part.file, first, last) > until
            start = max(first, part.first)
            held = np.flatnonzero(late[start - first : part.last - first])
            if len(held):
                return start + int(held[0])
        return part.last

    def read(self, part: Part, columns: Sequence[str] | None) -> SplitRows:
        names, known = selected(self.schema, columns), self._columns(part.file)
        schema = needed(self.schema, (*self.required, *known.doubtful), columns)
        rows = read_frame(self.frame(part, schema.names), schema, self.required)
        bad = located(self.where, part, self.described(part, rows, schema), rows.bad_places)
        return SplitRows(narrowed(rows.frame, names), bad)

    def read_wanted(
        self, parts: Sequence[Part], columns: Sequence[str], unwanted: tuple[Pattern, ...], deciding: Collection[str]
    ) -> Wanted:
        """Read the rows that match none of the patterns; of all rows the deciding columns."""
        return part_reader(self, columns, unwanted, deciding).read(parts)

    def read_all(self, part: Part) -> Rows:
        return read_frame(self.frame(part, self.schema.names), self.schema, self.required)

    def where(self, part: Part, places: Sequence[int]) -> list[str]:
        return [f"row {part.first + at + 1}" for at in places]

    def group_borders(self, file: File) -> tuple[int, ...]:
        """The first rows of the row groups, and the number of rows."""
        return self._footer(file).borders

    def doubtful(self, file: File) -> tuple[str, ...]:
        """The columns of the schema that may have a value that does not fit."""
        return self._columns(file).doubtful

    def name_in(self, file: File, column: str) -> str:
        """The file's name of a column."""
        return self._columns(file).names[column]

    def described(self, part: Part, rows: Rows, read: Schema) -> pl.DataFrame:
        """Return the bad rows with the values of all columns, also of those that were not read."""
        if not rows.bad.height or read == self.schema:
            return rows.bad
        texts = texts_of(self.frame(part, self.schema.names), rows.bad_places)
        return rows.bad.with_columns(pl.Series("input", texts, pl.String))

    def _columns(self, file: File) -> Columns:
        check_whole(file)
        return columns_of(file, self.schema)

    def frame(self, part: Part, columns: Sequence[str], chosen: pl.Series | None = None) -> pl.DataFrame:
        """Return these columns of a part with the types of the file and the names of the schema. `chosen`: the mask of
        the rows to return; None: all."""
        return _read(part, {name: self._columns(part.file).names[name] for name in columns}, chosen)

    def _footer(self, file: File) -> Footer:
        return _footer(file, self.schema.time)

    def _groups(self, part: Part) -> list[tuple[int, int, tuple[int, int] | None]]:
        """Return the row groups that the part overlaps: first and last row, least and greatest time."""
        footer = self._footer(part.file)
        return [
            (first, last, self._bounds(times))
            for (first, last), times in zip(pairwise(footer.borders), footer.times, strict=True)
            if first < part.last and last > part.first
        ]

    def _bounds(self, times: tuple[Any, Any] | None) -> tuple[int, int] | None:
        if times is None:
            return None
        made = coerce_values(times, self._time_type())
        lowest, highest = made.values.cast(pl.Int64)
        return None if made.wrong or lowest is None or highest is None else (lowest, highest)

    def _times(self, file: File, first: int, last: int) -> Integers:
        time = str(self.schema.time)
        return _times(Part(file, first, last), self._columns(file).names[time], self._time_type())

    def _time_type(self) -> Type:
        return self.schema.type_of(str(self.schema.time))


def _possible(found: pa.DataType, type_: Type) -> bool:
    """Return whether some value of an Arrow type can become one of our types."""
    if pa.types.is_nested(found):
        return False
    try:
        given = pl.Series(pa.array([], found)).dtype
    except (pa.ArrowException, pl.exceptions.PolarsError):
        return False
    return fit(given, type_) is not Fit.NEVER


def _read(part: Part, names: dict[str, str], chosen: pl.Series | None = None) -> pl.DataFrame:
    """Return the rows of a part, or the chosen ones, by name the column that the file has under another name."""
    file, first, last = part
    check_whole(file)
    try:
        scan = pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
        picked = [pl.col(found).alias(name) for name, found in names.items()]
        found = scan.select(picked).slice(first, last - first).collect()
        return (found if chosen is None else found.filter(chosen)).rechunk()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(file, str(error).splitlines()[0]) from error


@lru_cache(maxsize=10_000)
def _footer(file: File, time: str | None) -> Footer:
    check_whole(file)
    try:
        with pq.ParquetFile(file.path) as opened:
            described, held = opened.schema_arrow, opened.metadata
    except (OSError, pa.ArrowException) as error:
        check_parquet(file)
        raise unreadable(file, str(error).splitlines()[0]) from error
    groups = [held.row_group(at) for at in range(held.num_row_groups)]
    borders = (0, *np.cumsum([group.num_rows for group in groups], dtype=np.int64).tolist())
    paths = [held.schema.column(at).path.lower() for at in range(held.num_columns)]
    place = paths.index(time.lower()) if time is not None and time.lower() in paths else None
    times = tuple(None if place is None else _range(group.column(place).statistics) for group in groups)
    return Footer(borders, {field.name: field.type for field in described}, times)


def _range(statistics: Any) -> tuple[Any, Any] | None:
    """Return the least and greatest value, if they are known and ordered as times (text is not)."""
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        found = statistics.min, statistics.max
    except (ValueError, OverflowError):  # a time that Python does not have
        return None
    return found if all(isinstance(value, int | date) and not isinstance(value, bool) for value in found) else None


@lru_cache(maxsize=8)
def _times(part: Part, name: str, type_: Type) -> Integers:
    frame = _read(part, {name: name})
    times = coerce(frame.to_series(), type_).values.cast(pl.Int64)
    return times.fill_null(BEFORE_ALL).to_numpy()
