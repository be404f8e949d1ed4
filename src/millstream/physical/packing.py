"""Pieces of a stream, packed for the shards that read it.

Every shard of a group gets its part of the rows, all punctuations, and word of the whole piece: how far time has come,
on whichever shard. So each shard can tell late tuples and derive the same punctuation as if it had seen all rows. Where
a query reads the late tuples themselves, hashed as it likes, the whole piece goes to every shard. Of a stream with a
key or ascending columns, and of one that every shard counts, some columns of all rows may have to: see `shares`.

Where queries only aggregate a stream, its rows are aggregated here and the partial groups are sent. A shard that finds
that some row of the piece may be late reads the piece again and looks at every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.schema import TS
from millstream.ingest.marks import Marks
from millstream.ingest.whole import Whole, whole_of
from millstream.logical.catalog import StreamDefinition
from millstream.physical.failures import FAULTS, blame_rows
from millstream.physical.hashing import shard_of
from millstream.physical.partial import Partial
from millstream.physical.parts import Again, Part, Target, hashed
from millstream.physical.shares import OWN, Share, marked

if TYPE_CHECKING:
    from millstream.ingest.paged import Piece


@dataclass(frozen=True, slots=True)
class _Read:
    """A piece that was read. `given`: nobody else can read it."""

    stream: StreamDefinition
    piece: Piece
    columns: tuple[str, ...]
    rows: pl.DataFrame
    marks: Marks | None
    bad: pl.DataFrame
    whole: Whole
    given: bool

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def again(self) -> Piece | None:
        return None if self.given else self.piece

    @property
    def plain(self) -> Whole:
        """Word of the whole for those who have all rows."""
        return replace(self.whole, before=None)

    def rejected(self, number: int) -> pl.DataFrame | None:
        """The rows that did not fit, for the first shard."""
        return self.bad if number == 0 and self.bad.height else None

    def known(self, columns: Iterable[str]) -> pl.DataFrame:
        """These columns, and those that tell which rows are late."""
        wanted = {*self.stream.required, *columns, *(() if self.marks is None else self.marks.columns)}
        return self.rows.select(name for name in self.rows.columns if name in wanted)


def pack(
    stream: StreamDefinition, piece: Piece, columns: tuple[str, ...], targets: tuple[Target, ...], now: int = 0
) -> Iterator[tuple[int, Part]]:
    """Read a piece; its parts, with the labels they go to. With `now` the rows are at hand only here, so that they are
    sent as they are and tell the time."""
    taken = piece.read(columns)
    rows, marks = marked(taken.rows)
    whole = whole_of(rows, stream.schema, stream.ascending)
    read = _Read(stream, piece, columns, rows, marks, taken.bad, whole, given=now > 0)
    for target in targets:
        for label, part in _packed(read, target):
            yield label, replace(part, now=now) if now else part


def _packed(read: _Read, target: Target) -> Iterator[tuple[int, Part]]:
    if target.counted is not None and len(target.labels) > 1:
        return _counted(read, target, target.counted.keys, read.known(target.counted.columns))
    if read.stream.ascending or read.stream.primary_key:
        return _judged(read, target)
    if read.given or target.raw or read.marks is not None or read.bad.height or read.stream.schema.time is None:
        return _raw(read, target)
    return _aggregated(read, target, read.stream.schema.time)


def _counted(
    read: _Read, target: Target, keys: Iterable[tuple[str, ...]], common: pl.DataFrame
) -> Iterator[tuple[int, Part]]:
    """All rows to each shard, most of them with few columns."""
    shards = [shard_of(read.rows, key, len(target.labels)) for key in keys]
    for number, label in enumerate(target.labels):
        share = Share(None, number, len(target.labels), read.rows.height, read.again, read.columns)
        own, known = _with_own(read.rows, common, np.logical_or.reduce([one == number for one in shards]))
        share = replace(share, piece=None) if known is None else share
        rejected, first = read.rejected(number), number == 0
        yield label, Part(read.name, own, read.plain, read.marks, rejected, share=share, counted=first, common=known)


def _with_own(
    rows: pl.DataFrame, common: pl.DataFrame, mine: npt.NDArray[np.bool_]
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """A shard's own rows, and what it needs of all; all rows if that is all of them."""
    if common.width == rows.width:
        return rows, None
    return rows.filter(pl.Series(mine)), common.with_columns(pl.Series(OWN, mine))


def _judged(read: _Read, target: Target) -> Iterator[tuple[int, Part]]:
    """Shares of a piece: each shard's own rows, and of all rows what they are judged by, unless word of the whole will
    do."""
    key, count = target.key, len(target.labels)
    if key is None or count == 1:
        for number, label in enumerate(target.labels):
            share, first = Share(None, number, count, read.rows.height), number == 0
            yield (
                label,
                Part(read.name, read.rows, read.plain, read.marks, read.rejected(number), share=share, counted=first),
            )
        return
    fall = any(climb.falls for climb in read.whole.climbs)
    calm = not (read.given or read.marks is not None or read.stream.primary_key or fall)
    shards, common = shard_of(read.rows, key, count), read.known(key)
    for number, label in enumerate(target.labels):
        mine = shards == number
        share = Share(key, number, count, int(mine.sum()), read.again, read.columns)
        if calm:
            own = read.rows.filter(pl.Series(mine))
            yield label, Part(read.name, own, _of(read.whole, mine), None, read.rejected(number), share=share)
            continue
        own, known = _with_own(read.rows, common, mine)
        share = replace(share, piece=None) if known is None else share
        yield label, Part(read.name, own, read.plain, read.marks, read.rejected(number), share=share, common=known)


def _of(whole: Whole, mine: npt.NDArray[np.bool_]) -> Whole:
    """Word of the whole for those who have these rows."""
    return whole if whole.before is None else replace(whole, before=whole.before[mine])


def _raw(read: _Read, target: Target) -> Iterator[tuple[int, Part]]:
    rows, marks, count = read.rows, read.marks, len(target.labels)
    # Rows that are aggregated in the shard are hashed there too, so that it needs all of them.
    shards = shard_of(rows, target.key, count) if target.key is not None and target.raw and count > 1 else None
    for number, label in enumerate(target.labels):
        rejected = read.rejected(number)
        if shards is None:
            again = None if target.raw else Again(read.piece, read.columns, target.partials, number, count)
            yield label, Part(read.name, rows, read.whole, marks, rejected, again=again, counted=number == 0)
            continue
        mine = shards == number
        moved = marks
        if marks is not None:
            # After p rows of the piece means after as many of this shard's as are among them.
            passed = np.concatenate(([0], np.cumsum(mine)))
            moved = Marks(marks.punctuations, passed[marks.positions].astype(np.int64))
        yield label, Part(read.name, rows.filter(pl.Series(mine)), _of(read.whole, mine), moved, rejected)


def _aggregated(read: _Read, target: Target, time: str) -> Iterator[tuple[int, Part]]:
    count = len(target.labels)
    page = read.rows.with_columns(read.rows.get_column(time).cast(pl.Int64).alias(TS))
    made = {made.name: (_groups(read.name, made.partial, page), made.key) for made in target.partials}
    for number, label in enumerate(target.labels):
        groups = {name: hashed(partial, key, number, count) for name, (partial, key) in made.items()}
        again = Again(read.piece, read.columns, target.partials, number, count)
        yield label, Part(read.name, pl.DataFrame(), read.plain, partials=groups, again=again)


def _groups(stream: str, partial: Partial, page: pl.DataFrame) -> pl.DataFrame:
    try:
        return partial.rows(page)
    except FAULTS as error:
        raise blame_rows("partial aggregate", stream, page, partial.rows, error) from error
