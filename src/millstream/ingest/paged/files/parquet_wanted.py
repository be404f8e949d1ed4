"""The wanted rows of a parquet file: what no reader wants is not read.

| rows | read |
|---|---|
| of a row group that matches a pattern as a whole, by its statistics | deciding columns, and those with bad values |
| of another row group | the same, and the columns that the patterns restrict |
| of another row group with a wanted row | all needed columns |

The statistics of a row group are the least and the greatest value of a column and the number of NULLs. They bound the
values whether or not they are exact. NaN is not in them, so those of REAL and DOUBLE show nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.algebra.arrays import Mask
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction, between
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.ingest.coerce import coerce, coerce_values
from millstream.ingest.paged.files.formats import File, Part, located, unreadable
from millstream.ingest.paged.split import narrowed, selected
from millstream.ingest.paged.wanted import Skipped, Wanted, unwanted_rows
from millstream.ingest.rows import NO_BAD, Rows, read_frame

if TYPE_CHECKING:
    from millstream.ingest.paged.files.parquet import ParquetFormat

_RANGED = (Type.INT, Type.BIGINT, Type.TIMESTAMP, Type.DATE, Type.VARCHAR, Type.BOOLEAN)
"""Types whose order is that of the statistics."""


class _Run(NamedTuple):
    """Adjacent row groups that are all unwanted by their statistics, or none of which is."""

    part: Part
    groups: int
    unwanted: bool
    nulls: bool
    """True if a required column may have NULLs."""


@dataclass(frozen=True, slots=True)
class PartReader:
    """Reads the wanted rows of parts of files, with these columns."""

    format: ParquetFormat
    columns: tuple[str, ...]
    unwanted: tuple[Pattern, ...]
    deciding: frozenset[str]

    def read(self, parts: Sequence[Part]) -> Wanted:
        empty = _empty(self.format.schema, self.columns)
        return joined([self._read(part, run) for part in parts for run in self._runs(part)], empty)

    def _read(self, part: Part, run: _Run) -> Wanted:
        schema, names = self.format.schema, self._first(run)
        height = run.part.last - run.part.first
        first = schema.with_attributes([a for a in schema if a.name in names])
        chunks, needed = run.groups * len(names), run.groups * len(self._all(part.file))
        if not names:  # all its rows fit, and nothing is to be known of them
            known = pl.DataFrame(height=height)
            return self._none(known, Skipped(height, height, 0, run.groups, 0, needed))
        required = [name for name in self.format.required if name in first]
        rows = read_frame(self.format.frame(run.part, first.names), first, required)
        bad = located(self.format.where, run.part, self.format.described(run.part, rows, first), rows.bad_places)
        decides = [name for name in first.names if name in self.deciding]
        known = rows.frame if decides == rows.frame.columns else narrowed(rows.frame, decides)
        if run.unwanted:
            counts = Skipped(height, known.height, 0, run.groups, chunks, needed - chunks)
            return self._none(known, counts, bad)
        kept = ~unwanted_rows(rows.frame, self.unwanted)
        count = int(kept.sum())
        if not count:
            counts = Skipped(height, known.height, run.groups, 0, chunks, needed - chunks)
            return self._none(known, counts, bad)
        wanted = self._rest(run.part, rows, first, kept)
        counts = Skipped(height, known.height - count, run.groups, 0, needed, 0)
        return Wanted(wanted, known, kept, None, bad, counts)

    def _rest(self, part: Part, rows: Rows, first: Schema, kept: Mask) -> pl.DataFrame:
        """The wanted rows with all columns, of which the `first` ones are read."""
        chosen = pl.Series(kept)
        frame, schema = rows.frame.filter(chosen), self.format.schema
        rest = {a.name: a.type for a in schema if a.name in self.columns and a.name not in first}
        if rest:  # all values of these columns fit
            if rows.index is None:
                read = self.format.frame(part, tuple(rest), chosen)
            else:
                read = self.format.frame(part, tuple(rest))[rows.index].filter(chosen)
            frame = frame.hstack([coerce(read.get_column(name), rest[name]).values for name in rest])
        return frame.select(self.columns)

    def _none(self, known: pl.DataFrame, counts: Skipped, bad: pl.DataFrame = NO_BAD) -> Wanted:
        empty = _empty(self.format.schema, self.columns)
        return Wanted(empty, known, np.zeros(known.height, dtype=np.bool_), None, bad, counts)

    def _first(self, run: _Run) -> set[str]:
        """The columns to read of all rows: those that decide, and those that may have bad values."""
        time = self.format.schema.time
        found = {*self.deciding, *self.format.doubtful(run.part.file), *(() if time is None else (time,))}
        found |= set(self.format.required) if run.nulls else set()
        if not run.unwanted:
            found |= {name for pattern in self.unwanted for name in pattern.attributes}
        return found

    def _all(self, file: File) -> set[str]:
        """The columns that are read of a row group with wanted rows."""
        return {*self.columns, *self.deciding, *self.format.required, *self.format.doubtful(file)}

    def _runs(self, part: Part) -> Iterator[_Run]:
        borders = self.format.group_borders(part.file)
        spans = [(at, first, last) for at, (first, last) in enumerate(pairwise(borders))]
        held = [group for group in spans if group[1] < part.last and group[2] > part.first]
        sure = self._sure(part.file, len(borders) - 1)
        nulls = [_has_nulls(part.file, name) for name in self._names(part.file, self.format.required)]
        for unwanted, groups in groupby(held, key=lambda group: sure[group[0]]):
            run = list(groups)
            first, last = max(part.first, run[0][1]), min(part.last, run[-1][2])
            may = any(found[at] for found in nulls for at, _, _ in run)
            yield _Run(Part(part.file, first, last), len(run), unwanted, may)

    def _sure(self, file: File, groups: int) -> list[bool]:
        """Which row groups are unwanted as a whole."""
        doubtful, types = set(self.format.doubtful(file)), {a.name: a.type for a in self.format.schema}
        found = [False] * groups
        for pattern in self.unwanted:
            usable = all(types[name] in _RANGED and name not in doubtful for name in pattern.attributes)
            if not usable:
                continue
            held = [
                (restriction, _ranges(file, *self._names(file, (name,)), types[name]))
                for name, restriction in pattern.items
            ]
            for at in range(groups):
                spans = [(restriction, ranges[at]) for restriction, ranges in held]
                found[at] |= all(span is not None and restriction.covers(span) for restriction, span in spans)
        return found

    def _names(self, file: File, columns: Collection[str]) -> list[str]:
        return [self.format.name_in(file, column) for column in columns]


def joined(parts: Sequence[Wanted], empty: pl.DataFrame) -> Wanted:
    """The wanted rows of consecutive parts."""
    if len(parts) == 1:
        return parts[0]
    rows = [part.rows for part in parts if part.rows.height]
    counts = Skipped()
    for part in parts:
        counts += part.skipped
    masks = [np.ones(part.known.height, dtype=np.bool_) if part.kept is None else part.kept for part in parts]
    kept = np.concatenate(masks) if masks else np.ones(0, dtype=np.bool_)
    known = [part.known for part in parts]
    return Wanted(
        pl.concat(rows, rechunk=True) if rows else empty,
        pl.concat(known) if known and known[0].width else pl.DataFrame(height=len(kept)),
        None if kept.all() else kept,
        None,
        pl.concat([part.bad for part in parts]) if parts else NO_BAD,
        counts,
    )


@lru_cache(maxsize=64)
def _empty(schema: Schema, columns: tuple[str, ...]) -> pl.DataFrame:
    return schema.empty().select(columns)


@lru_cache(maxsize=10_000)
def _ranges(file: File, name: str, type_: Type) -> tuple[Restriction | None, ...]:
    """What the values of a column in each row group are known to lie within; None: nothing, or there are NULLs."""
    return tuple(_range(chunk, type_) for chunk in _chunks(file, name))


def _range(chunk: Any, type_: Type) -> Restriction | None:
    known = None if chunk is None else chunk.statistics
    if known is None or not known.has_min_max or not known.has_null_count or known.null_count:
        return None
    try:
        made = coerce_values((known.min, known.max), type_)
    except (ValueError, OverflowError):  # a time that Python does not have
        return None
    lowest, highest = made.values.to_list()
    if made.wrong or lowest is None or highest is None:
        return None
    return between(lowest, highest, lo_closed=True, hi_closed=True)


@lru_cache(maxsize=10_000)
def _has_nulls(file: File, name: str) -> tuple[bool, ...]:
    """Whether a column may have NULLs, for each row group."""
    known = [None if chunk is None else chunk.statistics for chunk in _chunks(file, name)]
    return tuple(held is None or not held.has_null_count or bool(held.null_count) for held in known)


def _chunks(file: File, name: str) -> list[Any]:
    """The metadata of a column in each row group."""
    try:
        held = pq.read_metadata(file.path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, str(error).splitlines()[0]) from error
    places = [at for at in range(held.num_columns) if held.schema.column(at).path == name]
    groups = [held.row_group(at) for at in range(held.num_row_groups)]
    return [group.column(places[0]) if places else None for group in groups]


def part_reader(
    format_: ParquetFormat, columns: Sequence[str] | None, unwanted: tuple[Pattern, ...], deciding: Collection[str]
) -> PartReader:
    return PartReader(format_, selected(format_.schema, columns), unwanted, frozenset(deciding))
