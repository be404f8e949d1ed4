"""What a shard gets of a piece of a stream: the part, how it travels, and who it is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from millstream.algebra import values
from millstream.algebra.schema import NEVER, Schema
from millstream.algebra.values import value
from millstream.ingest.arrivals import CheckedRows, PunctuatedRows
from millstream.ingest.marks import Marks
from millstream.ingest.paged import Piece
from millstream.ingest.whole import Whole, whole_of
from millstream.physical.codec import decode, encode
from millstream.physical.hashing import shard_of
from millstream.physical.partial import Partial
from millstream.physical.placeholders import Counted
from millstream.physical.shares import Share, with_all

BEFORE = "__before"
"""The highest timestamp before each row of a piece that is not in order."""


@value("partial_stream")
@dataclass(frozen=True, slots=True)
class PartialStream:
    """A stream of partial groups, its name, and the columns it is hashed on (None: all of it in one place)."""

    name: str
    partial: Partial
    key: tuple[str, ...] | None


@value("target")
@dataclass(frozen=True, slots=True)
class Target:
    """The shards of one group that read a stream. `key`: hashed on these columns; None: all of it goes to each.
    `raw`: the rows themselves are read; `partials`: the partial streams that are read; `counted`: of most rows not more
    than that is read on each shard."""

    labels: tuple[int, ...]
    key: tuple[str, ...] | None
    raw: bool = True
    partials: tuple[PartialStream, ...] = ()
    counted: Counted | None = None


@value("again")
@dataclass(frozen=True, slots=True)
class Again:
    """How to read a piece again: all of its rows, of which this shard has its share."""

    piece: Piece
    columns: tuple[str, ...]
    partials: tuple[PartialStream, ...]
    number: int
    count: int

    def rows(self) -> pl.DataFrame:
        given = self.piece.read(self.columns).rows
        return given.rows if isinstance(given, PunctuatedRows) else given

    def share(self, accepted: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
        """This shard's partial groups of the rows that were accepted."""
        for stream in self.partials:
            yield stream.name, hashed(stream.partial.rows(accepted), stream.key, self.number, self.count)


@dataclass(frozen=True, slots=True)
class Part:
    """What one shard gets of a piece: rows, or partial groups by stream. Where rows are to be aggregated in the shard,
    all of them are given, and `again` knows the share."""

    stream: str
    rows: pl.DataFrame
    whole: Whole
    marks: Marks | None = None
    bad: pl.DataFrame | None = None
    partials: dict[str, pl.DataFrame] = field(default_factory=dict)
    again: Again | None = None
    share: Share | None = None
    """Where whether a row is late depends on those of other shards: how to tell."""
    now: int = 0
    """The time of the batch, where the part itself must tell."""
    counted: bool = True
    """Whether its rows are this shard's to count: of rows that go to every shard the first one counts them."""
    common: pl.DataFrame | None = None
    """Of all rows of the piece the columns that every shard needs, and which ones are among `rows`; None: there is
    nothing but `rows`."""

    def elements(self) -> list[CheckedRows]:
        return [CheckedRows(self.rows, self.marks, self.bad)]

    @property
    def given(self) -> bool:
        """Whether the rows themselves are here."""
        return bool(self.rows.columns)

    @property
    def count(self) -> int:
        """How many rows of the piece are this shard's to count."""
        if self.share is not None:
            return self.share.rows if self.counted else 0
        if self.again is None:
            return self.rows.height if self.counted else 0
        return self.whole.rows if self.again.number == 0 else 0

    def unfolded(self) -> Part:
        """The same with the rows themselves, if these are partial groups, and with all that are judged together."""
        if self.share is not None:
            return with_all(self, self.share)
        if self.given or self.again is None:
            return self
        rows = self.again.rows()
        return Part(self.stream, rows, self.whole, again=self.again)

    def cut(self, first: int, last: int, end: int | None, schema: Schema) -> Part:
        """The rows from `first` to `last`, with the time of the rows up to `end` and the punctuations before the last
        of them; None: with all there is of both."""
        rows, marks, bad, whole = self.rows.slice(first, last - first), self.marks, self.bad, self.whole
        before = None if whole.before is None else whole.before[first:last]
        if end is None:
            whole = replace(whole, before=before)
        else:
            known = whole_of(self.rows.slice(0, end), schema)
            seen = NEVER if whole.before is None else int(whole.before[end - 1])
            whole = replace(whole, newest=max(known.newest, seen), last=known.last, rows=end, before=before)
            bad = None
            if marks is not None:
                marks = marks.keep(marks.positions < end)
        if marks is not None:
            marks = Marks(marks.punctuations, np.clip(marks.positions - first, 0, last - first))
        return Part(self.stream, rows, whole, marks, bad, again=self.again, share=self.share, counted=self.counted)

    def to_bytes(self) -> tuple[bytes, bytes]:
        """Head and page."""
        whole, rows = self.whole, self.rows
        if whole.before is not None:
            rows = rows.with_columns(pl.Series(BEFORE, whole.before))
        summary = whole.newest, whole.last, whole.rows, whole.oldest, whole.lag, whole.climbs
        rest = self.marks, self.bad, self.partials, self.again, self.share, self.now, self.counted, self.common
        return values.encode((summary, *rest)), encode(rows) if self.rows.columns else b""

    @classmethod
    def from_bytes(cls, stream: str, head: bytes, page: bytes) -> Part:
        summary, *rest = values.decode(head, "the head of a page")
        rows = decode(page) if page else pl.DataFrame()
        before = None
        if BEFORE in rows.columns:
            before = rows.get_column(BEFORE).to_numpy()
            rows = rows.drop(BEFORE)
        return cls(stream, rows, replace(Whole(*summary), before=before), *rest)


def hashed(rows: pl.DataFrame, key: tuple[str, ...] | None, number: int, count: int) -> pl.DataFrame:
    """A shard's part of some rows."""
    if key is None or count == 1:
        return rows
    return rows.filter(pl.Series(shard_of(rows, key, count) == number))
