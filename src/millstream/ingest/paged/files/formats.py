"""What a file source asks of a file format, and the splits it makes.

The extent of a file is counted in what its format is cut by: rows for parquet, bytes for text. Formats and splits are
values.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import polars as pl

from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.values import value
from millstream.errors import InputError
from millstream.ingest.paged.split import SplitRows
from millstream.ingest.rows import NO_BAD, Rows

BEFORE_ALL = -(1 << 63)
"""The time of a row that has none: it is a bad row, and nothing waits for it."""


@value("file")
class File(NamedTuple):
    path: str
    size: int
    """In bytes, when it was listed."""


@value("file_part")
class Part(NamedTuple):
    """What lies from `first` up to, not including, `last` of a file's extent."""

    file: File
    first: int
    last: int


class Format(Protocol):
    @property
    def schema(self) -> Schema: ...

    @property
    def worth(self) -> int:
        """What a split should have at least, to be worth a task of its own."""

    @property
    def by_row(self) -> bool:
        """Whether the extent is counted in rows, and a batch may end inside a file."""

    def check(self, file: File) -> None:
        """InputError if the file is not of the format, or lacks a column."""

    def extent(self, file: File) -> int: ...

    def rows(self, file: File) -> int:
        """About how many rows the file has."""

    def borders(self, part: Part) -> Sequence[int] | None:
        """Where inside the part a cut costs nothing; None if it can only be read as a whole."""

    def first_time(self, part: Part) -> int | None:
        """The event time of the first row, in the time column's units; None if no row has one."""

    def released(self, part: Part, until: int) -> int:
        """Up to where the part can be read if rows after an event time are held back."""

    def read(self, part: Part, columns: Sequence[str] | None) -> SplitRows: ...


@value("file_piece")
@dataclass(frozen=True, slots=True)
class FileSplit:
    format: Format
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int | None:
        return sum(part.last - part.first for part in self.parts) if self.format.by_row else None

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        made = [self.format.read(part, columns) for part in self.parts]
        if len(made) == 1:
            return made[0]
        rows = [split.rows for split in made if isinstance(split.rows, pl.DataFrame)]
        return SplitRows(_stacked(rows), pl.concat([split.bad for split in made]))


def _stacked(frames: list[pl.DataFrame]) -> pl.DataFrame:
    if not frames[0].width:
        return pl.DataFrame(height=sum(frame.height for frame in frames))
    return pl.concat(frames, rechunk=True)


def needed(schema: Schema, required: Sequence[str], columns: Sequence[str] | None) -> Schema:
    """The schema of what must be read to give these columns: they, the time and what must not be NULL."""
    if columns is None:
        return schema
    for name in columns:
        schema.index(name)
    wanted: set[str | None] = {*columns, *required, schema.time}
    kept: list[Attribute] = [a for a in schema if a.name in wanted]
    return schema.with_attributes(kept or schema.attributes[:1])


def given_out(rows: Rows, schema: Schema, columns: Sequence[str] | None) -> SplitRows:
    """Rows that were read, with the columns that are asked for."""
    frame, bad = rows.frame, rows.bad if rows.bad.height else NO_BAD
    if columns is None:
        return SplitRows(frame, bad)
    wanted = [name for name in schema.names if name in columns]
    if not wanted:
        return SplitRows(pl.DataFrame(height=frame.height), bad)
    return SplitRows(frame if wanted == frame.columns else frame.select(wanted), bad)


def check_whole(file: File) -> None:
    """InputError if the file is gone, or is no longer what was listed."""
    try:
        size = os.stat(file.path).st_size  # noqa: PTH116  (a path may be read thousands of times)
    except OSError as error:
        raise unreadable(file, str(error.strerror)) from error
    if size != file.size:
        detail = f"It had {file.size} bytes, and has {size} now."
        hint = "Files must appear whole: write them under a name that starts with '_' or '.', then rename them."
        raise InputError("M5042", f"file '{file.path}' has changed since it was listed", detail=detail, hint=hint)


def unreadable(file: File, reason: str) -> InputError:
    hint = "Files must appear whole: write them under a name that starts with '_' or '.', then rename them."
    return InputError("M5003", f"cannot read file '{file.path}'", detail=f"{reason.rstrip('.')}.", hint=hint)


def no_column(file: File, name: str, hint: str) -> InputError:
    return InputError("M5041", f"file '{file.path}' has no column '{name}'", hint=hint)
