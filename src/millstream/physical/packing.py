"""Pieces of a stream, packed for the shards that read it.

Every shard of a group gets its part of the rows, all punctuations, and word of the whole piece: how far time has come,
on whichever shard. So each shard can tell late tuples and derive the same punctuation as if it had seen all rows. Where
a query reads the late tuples themselves, hashed as it likes, the whole piece goes to every shard. Of a stream with a
key or ascending columns a part of all rows may have to: see `shares`.

Where queries only aggregate a stream, its rows are aggregated here and the partial groups are sent. A shard that finds
that some row of the piece may be late reads the piece again and looks at every row.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from millstream.algebra.schema import NEVER, TS, Schema
from millstream.ingest.arrivals import CheckedRows, PunctuatedRows
from millstream.ingest.marks import Marks
from millstream.ingest.whole import Whole, whole_of
from millstream.logical.catalog import StreamDefinition
from millstream.physical.codec import decode, encode
from millstream.physical.failures import FAULTS, blame_rows
from millstream.physical.hashing import shard_of
from millstream.physical.partial import Partial
from millstream.physical.shares import Share, marked, with_all

if TYPE_CHECKING:
    from millstream.ingest.paged import Piece

BEFORE = "__before"
"""The highest timestamp before each row of a piece that is not in order."""


@dataclass(frozen=True, slots=True)
class PartialStream:
    """A stream of partial groups, its name, and the columns it is hashed on (None: all of it in one place)."""

    name: str
    partial: Partial
    key: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Target:
    """The shards of one group that read a stream. `key`: hashed on these columns; None: all of it goes to each.
    `raw`: the rows themselves are read; `partials`: the partial streams that are read."""

    labels: tuple[int, ...]
    key: tuple[str, ...] | None
    raw: bool = True
    partials: tuple[PartialStream, ...] = ()


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
            yield stream.name, _share(stream.partial.rows(accepted), stream.key, self.number, self.count)


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
    """Of all rows of the piece the columns that every shard needs; None: there is nothing but `rows`."""

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
        groups = {name: encode(page) for name, page in self.partials.items()}
        page = encode(rows) if self.rows.columns else b""
        common = None if self.common is None else encode(self.common)
        head = summary, self.marks, self.bad, groups, self.again, self.share, self.now, self.counted, common
        return pickle.dumps(head, protocol=5), page

    @classmethod
    def from_bytes(cls, stream: str, head: bytes, page: bytes) -> Part:
        summary, marks, bad, groups, again, share, now, counted, held = pickle.loads(head)
        rows = decode(page) if page else pl.DataFrame()
        before = None
        if BEFORE in rows.columns:
            before = rows.get_column(BEFORE).to_numpy()
            rows = rows.drop(BEFORE)
        partials = {name: decode(held) for name, held in groups.items()}
        whole, common = replace(Whole(*summary), before=before), None if held is None else decode(held)
        return cls(stream, rows, whole, marks, bad, partials, again, share, now, counted, common)


def pack(
    stream: StreamDefinition, piece: Piece, columns: tuple[str, ...], targets: tuple[Target, ...], now: int = 0
) -> Iterator[tuple[int, Part]]:
    """Read a piece; its parts, with the labels they go to. With `now` the rows are at hand only here, so that they are
    sent as they are and tell the time."""
    for label, part in _pack(stream, piece, columns, targets, given=now > 0):
        yield label, replace(part, now=now) if now else part


def _pack(
    stream: StreamDefinition, piece: Piece, columns: tuple[str, ...], targets: tuple[Target, ...], *, given: bool
) -> Iterator[tuple[int, Part]]:
    read = piece.read(columns)
    (rows, marks), name, time = marked(read.rows), stream.name, stream.schema.time
    whole = whole_of(rows, stream.schema, stream.ascending)
    for target in targets:
        if stream.ascending or stream.primary_key:
            again = None if given else piece
            yield from _judged(stream, rows, whole, marks, read.bad, again, columns, target)
        elif given or target.raw or marks is not None or read.bad.height or time is None:
            yield from _raw(name, rows, whole, marks, read.bad, piece, columns, target)
        else:
            yield from _aggregated(name, rows, whole, piece, columns, time, target)


def _judged(
    stream: StreamDefinition,
    rows: pl.DataFrame,
    whole: Whole,
    marks: Marks | None,
    bad: pl.DataFrame,
    again: Piece | None,
    columns: tuple[str, ...],
    target: Target,
) -> Iterator[tuple[int, Part]]:
    """Shares of a piece: each shard's own rows, and of all rows what they are judged by, unless word of the whole will
    do. A shard may have to read the piece `again`; None: it cannot."""
    count, plain = len(target.labels), replace(whole, before=None)
    fall = any(climb.falls for climb in whole.climbs)
    calm = again is not None and marks is None and not stream.primary_key and not fall
    key = target.key if count > 1 else None
    shards = None if key is None else shard_of(rows, key, count)
    looked_at = {*stream.required, *(key or ()), *(() if marks is None else marks.columns)}
    common = rows.select(name for name in rows.columns if name in looked_at)
    for number, label in enumerate(target.labels):
        rejected = bad if number == 0 and bad.height else None
        if shards is None or (common.width == rows.width and not calm):
            height = rows.height if shards is None else int((shards == number).sum())
            share, counted = Share(key, number, count, height), shards is not None or number == 0
            yield label, Part(stream.name, rows, plain, marks, rejected, share=share, counted=counted)
            continue
        mine = shards == number
        own, share = rows.filter(pl.Series(mine)), Share(key, number, count, int(mine.sum()), again, columns)
        if calm:
            known = replace(whole, before=None if whole.before is None else whole.before[mine])
            yield label, Part(stream.name, own, known, None, rejected, share=share)
        else:
            yield label, Part(stream.name, own, plain, marks, rejected, share=share, common=common)


def _raw(
    stream: str,
    rows: pl.DataFrame,
    whole: Whole,
    marks: Marks | None,
    bad: pl.DataFrame,
    piece: Piece,
    columns: tuple[str, ...],
    target: Target,
) -> Iterator[tuple[int, Part]]:
    count = len(target.labels)
    # Rows that are aggregated in the shard are hashed there too, so that it needs all of them.
    shards = shard_of(rows, target.key, count) if target.key is not None and target.raw and count > 1 else None
    for number, label in enumerate(target.labels):
        rejected = bad if number == 0 and bad.height else None
        if shards is None:
            again = None if target.raw else Again(piece, columns, target.partials, number, count)
            yield label, Part(stream, rows, whole, marks, rejected, again=again, counted=number == 0)
            continue
        mine = shards == number
        before = None if whole.before is None else whole.before[mine]
        own = replace(whole, before=before)
        moved = marks
        if marks is not None:
            # After p rows of the piece means after as many of this shard's as are among them.
            passed = np.concatenate(([0], np.cumsum(mine)))
            moved = Marks(marks.punctuations, passed[marks.positions].astype(np.int64))
        yield label, Part(stream, rows.filter(pl.Series(mine)), own, moved, rejected)


def _aggregated(
    stream: str,
    rows: pl.DataFrame,
    whole: Whole,
    piece: Piece,
    columns: tuple[str, ...],
    time: str,
    target: Target,
) -> Iterator[tuple[int, Part]]:
    count = len(target.labels)
    page = rows.with_columns(rows.get_column(time).cast(pl.Int64).alias(TS))
    made = {made.name: (_groups(stream, made.partial, page), made.key) for made in target.partials}
    plain = replace(whole, before=None)
    for number, label in enumerate(target.labels):
        groups = {name: _share(partial, key, number, count) for name, (partial, key) in made.items()}
        again = Again(piece, columns, target.partials, number, count)
        yield label, Part(stream, pl.DataFrame(), plain, partials=groups, again=again)


def _groups(stream: str, partial: Partial, page: pl.DataFrame) -> pl.DataFrame:
    try:
        return partial.rows(page)
    except FAULTS as error:
        raise blame_rows("partial aggregate", stream, page, partial.rows, error) from error


def _share(groups: pl.DataFrame, key: tuple[str, ...] | None, number: int, count: int) -> pl.DataFrame:
    if key is None or count == 1:
        return groups
    return groups.filter(pl.Series(shard_of(groups, key, count) == number))
