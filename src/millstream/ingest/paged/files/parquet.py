"""Parquet files: cut by rows, where possible between row groups; only the needed columns are read.

| | |
|---|---|
| columns | found by name, not case-sensitive; others are ignored |
| types | converted as in `coerce`; a row with a value that does not fit is bad, if the column is read |
| replay | by the row groups' statistics of the time column; the column itself is read for one group at a time |
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.algebra.arrays import Integers
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.algebra.values import record
from millstream.errors import InputError, did_you_mean
from millstream.ingest.coerce import coerce, coerce_values
from millstream.ingest.paged.files.formats import BEFORE_ALL, File, Part, check_whole, needed, no_column, unreadable
from millstream.ingest.paged.split import SplitRows, narrowed, selected
from millstream.ingest.rows import read_frame


class Footer(NamedTuple):
    """The metadata of a file."""

    borders: tuple[int, ...]
    """First rows of the row groups, and the number of rows."""
    nested: dict[str, str]
    """Types of the nested columns, which none of our types can hold."""
    columns: tuple[str, ...]
    times: tuple[tuple[Any, Any] | None, ...]
    """The least and the greatest value of the time column in each row group, where known."""


@record("parquet_format")
class ParquetFormat:
    schema: Schema
    required: tuple[str, ...]
    by_row: ClassVar[bool] = True
    worth: ClassVar[int] = 200_000

    def check(self, file: File) -> None:
        footer = self._footer(file)
        names = _named(file, footer.columns, self.schema)
        for a in self.schema:
            if names[a.name] in footer.nested:
                found = footer.nested[names[a.name]]
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
        names, schema = selected(self.schema, columns), needed(self.schema, self.required, columns)
        rows = read_frame(_read(part, schema), schema, self.required)
        return SplitRows(narrowed(rows.frame, names), rows.bad)

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
        return _times(Part(file, first, last), str(self.schema.time), self._time_type())

    def _time_type(self) -> Type:
        return self.schema.type_of(str(self.schema.time))


def _read(part: Part, schema: Schema) -> pl.DataFrame:
    """Return the rows of a part with the types of the file and the names of the schema."""
    file, first, last = part
    check_whole(file)
    try:
        scan = pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
        names = _named(file, scan.collect_schema().names(), schema)
        picked = [pl.col(names[a.name]).alias(a.name) for a in schema]
        frame = scan.select(picked).slice(first, last - first).collect().rechunk()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(file, str(error).splitlines()[0]) from error
    texts = [a.name for a in schema if a.type is Type.VARCHAR and frame.schema[a.name] == pl.Binary]
    return frame.with_columns(pl.col(texts).cast(pl.String, strict=False)) if texts else frame


def _named(file: File, columns: Sequence[str], schema: Schema) -> dict[str, str]:
    """Return the file's names of the schema's columns."""
    lower = {name.lower(): name for name in columns}
    names = {a.name: a.name if a.name in columns else lower.get(a.name.lower()) for a in schema}
    for name, found in names.items():
        if found is None:
            raise no_column(file, name, did_you_mean(name, columns))
    return {name: found for name, found in names.items() if found is not None}


@lru_cache(maxsize=10_000)
def _footer(file: File, time: str | None) -> Footer:
    check_whole(file)
    try:
        with pq.ParquetFile(file.path) as opened:
            described, held = opened.schema_arrow, opened.metadata
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, str(error).splitlines()[0]) from error
    groups = [held.row_group(at) for at in range(held.num_row_groups)]
    borders = (0, *np.cumsum([group.num_rows for group in groups], dtype=np.int64).tolist())
    nested = {field.name: str(field.type) for field in described if pa.types.is_nested(field.type)}
    paths = [held.schema.column(at).path.lower() for at in range(held.num_columns)]
    place = paths.index(time.lower()) if time is not None and time.lower() in paths else None
    times = tuple(None if place is None else _range(group.column(place).statistics) for group in groups)
    return Footer(borders, nested, tuple(described.names), times)


def _range(statistics: Any) -> tuple[Any, Any] | None:
    """Return the least and greatest value, if they are known and ordered as times (text is not)."""
    if statistics is None or not statistics.has_min_max:
        return None
    found = statistics.min, statistics.max
    return found if all(isinstance(value, int | date) and not isinstance(value, bool) for value in found) else None


@lru_cache(maxsize=8)
def _times(part: Part, name: str, type_: Type) -> Integers:
    frame = _read(part, Schema.of((name, type_)))
    times = coerce(frame.to_series(), type_).values.cast(pl.Int64)
    return times.fill_null(BEFORE_ALL).to_numpy()
