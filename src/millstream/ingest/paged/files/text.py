"""Lines of text as rows: many at once where all of them fit, one by one only around those that do not.

A chunk of lines is first tried as a whole. If a line in it does not fit, its halves are tried, down to a few hundred
lines, which are then read one by one. So a bad line costs little, and what is good or bad, and why, does not depend on
the lines around it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

import polars as pl

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.ingest.coerce import coerce
from millstream.ingest.paged.files.formats import BEFORE_ALL, File, Part, check_whole, given_out, unreadable
from millstream.ingest.paged.split import SplitRows
from millstream.ingest.rows import NO_BAD, Rows, read_values

CHUNK = 65_536
LEAF = 512
SAMPLE = 65_536
NO_TEXT = "the line is not UTF-8"
_TIMES = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.fZ")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").pattern


@dataclass(frozen=True, slots=True)
class TextFormat(ABC):
    """What the formats of text files share: a file is counted in bytes, and its times are known once it was read."""

    schema: Schema
    required: tuple[str, ...]
    by_row: ClassVar[bool] = False
    worth: ClassVar[int] = 4_000_000

    @abstractmethod
    def read_all(self, part: Part) -> Rows:
        """All columns of a part."""

    def extent(self, file: File) -> int:
        return file.size

    def rows(self, file: File) -> int:
        return estimated_rows(file)

    def first_time(self, part: Part) -> int | None:
        return _times(self, part.file)[0]

    def released(self, part: Part, until: int) -> int:
        return part.last if _times(self, part.file)[1] <= until else part.first

    def read(self, part: Part, columns: Sequence[str] | None) -> SplitRows:
        for name in columns or ():
            self.schema.index(name)
        return given_out(self.read_all(part), self.schema, columns)


class LineReader(Protocol):
    """How a format reads lines, none of them blank."""

    def at_once(self, lines: Sequence[bytes]) -> pl.DataFrame | None:
        """All lines as a frame of the schema's columns; None unless every line surely fits."""

    def one_by_one(self, lines: Sequence[bytes]) -> Rows: ...


def read_lines(lines: Sequence[bytes], reader: LineReader, schema: Schema) -> Rows:
    """All that fits, in order, and all that does not."""
    empty = pl.DataFrame(schema={a.name: a.type.polars for a in schema})
    frames, bad = [empty], [NO_BAD]
    for start in range(0, len(lines), CHUNK):
        for made in _chunk(lines[start : start + CHUNK], reader):
            frames.append(made if isinstance(made, pl.DataFrame) else made.frame)
            if isinstance(made, Rows):
                bad.append(made.bad)
    return Rows(pl.concat(frames), None, pl.concat(bad), len(lines))


def _chunk(lines: Sequence[bytes], reader: LineReader) -> Iterator[pl.DataFrame | Rows]:
    made = reader.at_once(lines)
    if made is not None:
        yield made
    elif len(lines) <= LEAF:
        yield reader.one_by_one(lines)
    else:
        half = len(lines) // 2
        yield from _chunk(lines[:half], reader)
        yield from _chunk(lines[half:], reader)


def rows_of(
    lines: Sequence[bytes], values: Sequence[Sequence[Any] | str], schema: Schema, required: Sequence[str]
) -> Rows:
    """Rows from the values of each line, or the reason why it has none. Bad rows keep the text of their line."""
    right = [at for at, made in enumerate(values) if not isinstance(made, str)]
    rows = read_values([values[at] for at in right], schema, required)
    reasons = {at: made for at, made in enumerate(values) if isinstance(made, str)}
    if rows.index is not None:
        good = set(rows.index.tolist())
        misfits = [at for number, at in enumerate(right) if number not in good]
        reasons |= dict(zip(misfits, rows.bad.get_column("reason"), strict=True))
    places = sorted(reasons)
    texts = [lines[at].decode("utf-8", "replace") for at in places]
    bad = pl.DataFrame([texts, [reasons[at] for at in places]], schema=NO_BAD.schema)
    return Rows(rows.frame, None, bad, len(lines))


def quick_times(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Columns of text that are all timestamps or dates in a usual form, or all seconds, turned at once."""
    made = [
        _quick(frame.get_column(a.name), a.type)
        for a in schema
        if a.type in (Type.TIMESTAMP, Type.DATE) and frame.schema[a.name] == pl.String
    ]
    return frame.with_columns(made) if made else frame


def _quick(texts: pl.Series, type_: Type) -> pl.Series:
    nulls = texts.null_count()
    if type_ is Type.DATE:
        plain = texts.str.contains(f"^{_DATE}$").all()
        dates = texts.str.to_date("%Y-%m-%d", strict=False) if plain else texts
        return dates if dates.null_count() == nulls else texts
    for form in _TIMES:
        # The first value tells whether a form is worth trying on all.
        if texts.head(1).str.to_datetime(form, time_unit="us", strict=False).null_count() and not nulls:
            continue
        times = texts.str.to_datetime(form, time_unit="us", strict=False)
        if times.null_count() == nulls:
            return times
    seconds = texts.cast(pl.Float64, strict=False)
    return seconds if seconds.null_count() == nulls and seconds.is_finite().all() else texts


def read_bytes(part: Part) -> bytes:
    """The lines that start inside a part."""
    file, first, last = part
    check_whole(file)
    try:
        with Path(file.path).open("rb") as opened:
            if first > 0:
                opened.seek(first - 1)
                opened.readline()
            data = opened.read(max(last - opened.tell(), 0))
            if data and last < file.size and not data.endswith(b"\n"):
                data += opened.readline()
    except OSError as error:
        raise unreadable(file, str(error.strerror)) from error
    return data.removeprefix(b"\xef\xbb\xbf") if first == 0 else data


@lru_cache(maxsize=100_000)
def estimated_rows(file: File) -> int:
    """How many lines a file has, by those at its start."""
    check_whole(file)
    with Path(file.path).open("rb") as opened:
        start = opened.read(SAMPLE)
    lines = start.count(b"\n")
    if len(start) < SAMPLE:
        return lines + (not start.endswith(b"\n") and bool(start))
    return file.size * max(lines, 1) // len(start)


@lru_cache(maxsize=64)
def _times(format_: TextFormat, file: File) -> tuple[int | None, int]:
    """The first and the greatest event time of a file."""
    time = str(format_.schema.time)
    made = format_.read(Part(file, 0, file.size), [time])
    assert isinstance(made.rows, pl.DataFrame)
    times = coerce(made.rows.get_column(time), format_.schema.type_of(time)).values.cast(pl.Int64).drop_nulls()
    return (int(times[0]), int(times.to_numpy().max())) if len(times) else (None, BEFORE_ALL)
