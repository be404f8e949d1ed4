"""Lines of text as rows: many at once where all of them fit, one by one only around those that do not.

A chunk of lines is first read as a whole. If a line in it does not fit, its halves are tried, down to a few hundred
lines, which are then read one by one. So a bad line costs little. The result for a line does not depend on the lines
around it.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, ClassVar

import polars as pl

from millstream.algebra.early import Prod
from millstream.algebra.schema import Schema
from millstream.algebra.types import DATE, Type
from millstream.ingest.paged.files.formats import BEFORE_ALL, File, Part, check_whole, located
from millstream.ingest.paged.files.other_kinds import UNREADABLE, is_compressed, open_text, undecodable
from millstream.ingest.paged.files.prod_lines import LineReader, RowsAmongProds, prod_of
from millstream.ingest.paged.split import SplitRows, narrowed, selected
from millstream.ingest.rows import NO_BAD, Rows, rows_of
from millstream.runtime.expression.written_times import usual_times

CHUNK = 65_536
LEAF = 512
SAMPLE = 65_536
NO_TEXT = "the line is not UTF-8"
_TIMES = ((" ", ""), ("T", ""), ("T", "Z"))
"""The separators and zones of timestamps in usual forms."""


@dataclass(frozen=True, slots=True)
class TextFormat(ABC):
    """Base of the formats of text files: the extent is counted in bytes, and times are known only after reading. A
    compressed file is one split."""

    schema: Schema
    required: tuple[str, ...]
    prods: bool = False
    """True if lines may be prods (`prods.py`)."""
    by_row: ClassVar[bool] = False
    worth: ClassVar[int] = 4_000_000

    @abstractmethod
    def read_all(self, part: Part) -> Rows:
        """Read all columns of a part."""

    @abstractmethod
    def lines(self, part: Part) -> list[bytes]:
        """Return the lines of a part, without a header: rows and prods."""

    @abstractmethod
    def prod_text(self, line: bytes) -> str | None:
        """Return the text of a line that looks like a prod; None: it is a row."""

    @abstractmethod
    def numbers(self, data: bytes) -> list[int]:
        """Return the number of the line, from 1, of each row and prod in the text."""

    def extent(self, file: File) -> int:
        return file.size

    def rows(self, file: File) -> int:
        return estimated_rows(file)

    def first_time(self, part: Part) -> int | None:
        return _times(self, part.file)[0]

    def released(self, part: Part, until: int) -> int:
        return part.last if _times(self, part.file)[1] <= until else part.first

    def read(self, part: Part, columns: Sequence[str] | None) -> SplitRows:
        names, rows = selected(self.schema, columns), self.read_all(part)
        return SplitRows(narrowed(rows.frame, names), located(self.where, part, rows.bad, rows.bad_places))

    def where(self, part: Part, places: Sequence[int]) -> list[str]:
        before, numbers = lines_before(part), self.numbers(read_bytes(part))
        if self.prods:
            numbers = [
                numbers[at] for at, line in enumerate(self.lines(part)) if not isinstance(prod_of(line, self), Prod)
            ]
        return [f"line {before + numbers[at]}" for at in places]


def read_lines(lines: Sequence[bytes], reader: LineReader, format_: TextFormat) -> Rows:
    """Read all lines but prods, in order; bad rows keep the text of their line."""
    if format_.prods:
        lines = [line for line in lines if not isinstance(prod_of(line, format_), Prod)]
        reader = RowsAmongProds(reader, format_)
    frames, bad = [pl.DataFrame(schema={a.name: a.type.polars for a in format_.schema})], [NO_BAD]
    places: list[int] = []
    done = 0
    for start in range(0, len(lines), CHUNK):
        for rows in _read_chunk(lines[start : start + CHUNK], reader, format_):
            frames.append(rows.frame)
            bad.append(rows.bad)
            places += (done + place for place in rows.bad_places)
            done += rows.given
    return Rows(pl.concat(frames), None, pl.concat(bad), len(lines), tuple(places))


def infinite(frame: pl.DataFrame) -> bool:
    """Return whether a value may have become infinite because it is out of range: `1e400`."""
    floats = (column for column in frame if column.dtype.is_float())
    return any(column.is_infinite().any() for column in floats)


def _read_chunk(lines: Sequence[bytes], reader: LineReader, format_: TextFormat) -> Iterator[Rows]:
    rows = reader.at_once(lines)
    if rows is not None:
        yield rows
    elif len(lines) <= LEAF:
        values = [reader.values(line) for line in lines]
        yield rows_of(values, format_.schema, format_.required, lambda at: lines[at].decode("utf-8", "replace"))
    else:
        half = len(lines) // 2
        yield from _read_chunk(lines[:half], reader, format_)
        yield from _read_chunk(lines[half:], reader, format_)


def quick_times(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Convert whole columns of text whose values are all timestamps or dates in a usual form, or all seconds."""
    made = [
        _quick(frame.get_column(a.name), a.type)
        for a in schema
        if a.type in (Type.TIMESTAMP, Type.DATE) and frame.schema[a.name] == pl.String
    ]
    return frame.with_columns(made) if made else frame


def _quick(texts: pl.Series, type_: Type) -> pl.Series:
    nulls = texts.null_count()
    if type_ is Type.DATE:
        plain = texts.str.contains(f"^{DATE}$").all()
        dates = texts.str.to_date("%Y-%m-%d", strict=False) if plain else texts
        return dates if dates.null_count() == nulls else texts
    for separator, zone in _TIMES:
        # The first value shows whether a form is worth trying on all.
        if usual_times(texts.head(1), separator, zone).null_count() and not nulls:
            continue
        times = usual_times(texts, separator, zone)
        if times.null_count() == nulls:
            return times
    seconds = texts.cast(pl.Float64, strict=False)
    return seconds if seconds.null_count() == nulls and seconds.is_finite().all() else texts


def lines_before(part: Part) -> int:
    """Return the number of lines of the file before the first that starts inside a part."""
    with Path(part.file.path).open("rb") as opened:
        start = _seek(opened, part.first)
        opened.seek(0)
        return opened.read(start).count(b"\n")


def _seek(opened: BinaryIO, first: int) -> int:
    """Go to the first line that starts at a position or after it; return where it starts."""
    if first > 0:
        opened.seek(first - 1)
        opened.readline()
    return opened.tell()


def read_bytes(part: Part) -> bytes:
    """Return the lines that start inside a part."""
    file, first, last = part
    check_whole(file)
    try:
        whole = last == file.size and is_compressed(file)
        with open_text(file) as opened:
            _seek(opened, first)
            data = opened.read(-1 if whole else max(last - opened.tell(), 0))
            if data and last < file.size and not data.endswith(b"\n"):
                data += opened.readline()
    except UNREADABLE as error:
        raise undecodable(file, error) from error
    return data.removeprefix(b"\xef\xbb\xbf") if first == 0 else data


@lru_cache(maxsize=100_000)
def estimated_rows(file: File) -> int:
    """Return the number of lines of a file, estimated from its start."""
    check_whole(file)
    with Path(file.path).open("rb") as opened:
        start = opened.read(SAMPLE)
    try:
        text = zlib.decompressobj(wbits=31).decompress(start) if is_compressed(file) else start
    except zlib.error as error:
        raise undecodable(file, error) from error
    lines = text.count(b"\n")
    if len(start) < SAMPLE:
        return lines + (not text.endswith(b"\n") and bool(text))
    return file.size * max(lines, 1) // len(start)


@lru_cache(maxsize=64)
def _times(format_: TextFormat, file: File) -> tuple[int | None, int]:
    """Return the first and the greatest event time of a file."""
    rows = format_.read_all(Part(file, 0, file.size))
    times = rows.frame.get_column(str(format_.schema.time)).cast(pl.Int64).drop_nulls()
    return (int(times[0]), int(times.to_numpy().max())) if len(times) else (None, BEFORE_ALL)
