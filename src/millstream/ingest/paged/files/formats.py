"""The protocol of file formats, and the splits of files.

The extent of a file is counted in the units that its format is cut by: rows for parquet, bytes for text. Formats and
splits are values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.algebra.values import record, value
from millstream.errors import InputError, did_you_mean
from millstream.ingest.paged.split import SplitRows
from millstream.ingest.paged.wanted import Wanted
from millstream.ingest.rows import Rows

_HINT = "Files must appear whole: write them under a name that starts with '_' or '.', then rename them."
BEFORE_ALL = -(1 << 63)
"""The time of a row without one: it is a bad row, and replay does not wait for it."""


@value("file")
class File(NamedTuple):
    path: str
    size: int
    """Bytes, at the time of listing."""


@value("file_part")
class Part(NamedTuple):
    """The range from `first` up to, not including, `last` of a file's extent."""

    file: File
    first: int
    last: int


Where = Callable[[Part, Sequence[int]], list[str]]


class Format(Protocol):
    @property
    def schema(self) -> Schema: ...

    @property
    def worth(self) -> int:
        """Least extent of a split."""

    @property
    def by_row(self) -> bool:
        """True if the extent is counted in rows, and a batch may end inside a file."""

    def check(self, file: File) -> None:
        """Raise InputError if the file does not have the format, or lacks a column."""

    def extent(self, file: File) -> int: ...

    def rows(self, file: File) -> int:
        """Return the approximate number of rows of the file."""

    def borders(self, part: Part) -> Sequence[int] | None:
        """Return the positions inside the part where a cut is free; None if it can only be read as a whole."""

    def first_time(self, part: Part) -> int | None:
        """Return the first event time, in the time column's units; None if no row has one."""

    def released(self, part: Part, until: int) -> int:
        """Return the end of the readable range if rows after an event time are held back."""

    def read(self, part: Part, columns: Sequence[str] | None) -> SplitRows: ...

    def read_all(self, part: Part) -> Rows:
        """Read all columns of a part, with the places of bad rows."""

    def where(self, part: Part, places: Sequence[int]) -> list[str]:
        """Return where in its file the rows at these places of a part are: `line 7`, `row 7`."""


@record("file_piece")
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
        frames = [part.rows for part in made if isinstance(part.rows, pl.DataFrame)]
        return SplitRows(pl.concat(frames, rechunk=True), pl.concat([part.bad for part in made]))

    def read_wanted(
        self, columns: Sequence[str], unwanted: tuple[Pattern, ...], deciding: Collection[str]
    ) -> Wanted | None:
        """Read only what is wanted, if the format can; None: it cannot."""
        own = getattr(self.format, "read_wanted", None)
        found: Wanted | None = None if own is None else own(self.parts, columns, unwanted, deciding)
        return found


def needed(schema: Schema, required: Sequence[str], columns: Sequence[str] | None) -> Schema:
    """Return the schema of the columns to read for these columns: they, the time and the required ones."""
    if columns is None:
        return schema
    wanted: set[str | None] = {*columns, *required, schema.time}
    return schema.with_attributes([a for a in schema if a.name in wanted] or schema.attributes[:1])


def check_whole(file: File) -> None:
    """Raise InputError if the file is gone, or has changed since it was listed."""
    try:
        size = os.stat(file.path).st_size  # noqa: PTH116  (a path may be read thousands of times)
    except OSError as error:
        raise unreadable(file, str(error.strerror)) from error
    if size != file.size:
        detail = f"It had {file.size} bytes, and has {size} now."
        raise InputError("M5042", f"file '{file.path}' has changed since it was listed", detail=detail, hint=_HINT)


def unreadable(file: File, reason: str, hint: str = _HINT) -> InputError:
    return InputError("M5003", f"cannot read file '{file.path}'", detail=f"{reason.rstrip('.')}.", hint=hint)


def located(where: Where, part: Part, bad: pl.DataFrame, places: Sequence[int]) -> pl.DataFrame:
    """Return the bad rows at these places of a part, with reasons that say where in which file they are."""
    if not bad.height:
        return bad
    name = Path(part.file.path).name
    found = zip(bad.get_column("reason"), where(part, places), strict=True)
    return bad.with_columns(
        pl.Series("reason", [f"{reason} ({place} of {name})" for reason, place in found], pl.String)
    )


def positions(file: File, columns: Sequence[str], schema: Schema) -> dict[str, int]:
    """Return the position of each of the schema's columns in the file, by name: as it is spelled, else in any case.
    Raise InputError if one is missing, or given twice."""
    return {a.name: _position(file, columns, a.name) for a in schema}


def _position(file: File, columns: Sequence[str], name: str) -> int:
    found = [at for at, column in enumerate(columns) if column == name]
    found = found or [at for at, column in enumerate(columns) if column.lower() == name.lower()]
    if not found:
        values = any(column[:1].isdigit() for column in columns)
        hint = did_you_mean(name, list(dict.fromkeys(columns)))
        hint = "the first line has values, not names: WITH (header = 'false')" if values else hint
        raise InputError("M5041", f"file '{file.path}' has no column '{name}'", hint=hint)
    if len(found) > 1:
        hint = "Rename one of them: " + ", ".join(columns[at] for at in found)
        raise InputError("M5045", f"file '{file.path}' has the column '{name}' {len(found)} times", hint=hint)
    return found[0]
