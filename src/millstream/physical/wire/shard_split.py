"""What a shard gets of a split of a stream: the part, how it travels, and who it is for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from millstream.algebra import values
from millstream.algebra.schema import Schema
from millstream.algebra.values import value
from millstream.ingest.arrivals import CheckedRows
from millstream.ingest.placed_punctuations import TIME_LIMIT, PlacedPunctuations
from millstream.ingest.source import StreamSource
from millstream.ingest.split_summary import SplitSummary, summary_of
from millstream.physical.plan.partial import Partial
from millstream.physical.plan.placeholders import Counted
from millstream.physical.wire.codec import decode, encode
from millstream.physical.wire.own_rows import OWN, OwnRows, marked


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


@dataclass(frozen=True, slots=True)
class ShardSplit:
    """What one shard gets of a split. With word of the whole: its own rows, or partial groups by stream in their place.
    Without it: the rows of all shards, of which `share` knows the shard's own."""

    stream: str
    rows: pl.DataFrame
    share: OwnRows
    count: int
    """How many rows of the split this shard counts: those that go to every shard are counted by the first one."""
    whole: SplitSummary | None = None
    placed: PlacedPunctuations | None = None
    bad: pl.DataFrame | None = None
    partials: dict[str, pl.DataFrame] = field(default_factory=dict)
    common: pl.DataFrame | None = None
    """Of all rows of the split the columns that every shard needs, and which ones are among `rows`; None: there is
    nothing but `rows`."""
    now: int = 0
    """The time of the batch, where the part itself must tell."""

    def elements(self) -> list[CheckedRows]:
        return [CheckedRows(self.filled().rows, self.placed, self.bad)]

    def judged_by(self, source: StreamSource) -> ShardSplit:
        """The part as this source can judge it: as it is, or with the whole rows of all shards."""
        if self.whole is not None:
            enough = source.knows(self.whole, folded=bool(self.partials))
        else:
            enough = self.common is None or source.judges(self.common.columns)
        return self if enough else self.unfolded()

    def unfolded(self) -> ShardSplit:
        """A part with the rows of all shards, read again where it has less; as far as they are here if they cannot
        be."""
        if self.share.split is None or (self.whole is None and self.common is None):
            return self.filled()
        rows, placed = marked(self.share.split.read(self.share.columns).rows)
        return replace(self, rows=rows, whole=None, placed=placed, partials={}, common=None)

    def filled(self) -> ShardSplit:
        """A part with the rows of all shards, as far as they are here: NULL stands for what only their own shard
        has."""
        if self.common is None:
            return self
        common, rest = self.common.drop(OWN), self.rows.drop(self.common.columns, strict=False)
        own = self.common.get_column(OWN)
        place = pl.select(pl.when(own).then(own.cast(pl.Int64).cum_sum() - 1)).to_series()
        rows = common.hstack(rest.select(pl.all().gather(place))).select(self.rows.columns)
        return replace(self, rows=rows, common=None)

    def cut(self, first: int, last: int, end: int | None, schema: Schema) -> ShardSplit:
        """The rows from `first` to `last` by themselves, with the time of the rows up to `end` and the punctuations
        before the last of them; None: with all there is of both."""
        height = self.rows.height
        place, known = np.arange(height), self.rows if end is None else self.rows.head(end)
        mine = (place >= first) & (place < last) & self.share.owned(self.rows)
        placed = self.placed if self.placed is None or end is None else self.placed.keep(self.placed.positions < end)
        whole = None if end is not None else self.whole
        return replace(
            self,
            rows=self.rows.filter(pl.Series(mine)),
            share=replace(self.share, split=None),
            whole=summary_of(known, None, schema, TIME_LIMIT) if whole is None else whole,
            placed=None if placed is None else placed.among(mine),
            bad=self.bad if end is None else None,
        )

    def to_bytes(self) -> tuple[bytes, bytes]:
        """Head and page."""
        head = self.share, self.count, self.whole, self.placed, self.bad, self.partials, self.common, self.now
        return values.encode(head), encode(self.rows) if self.rows.columns else b""

    @classmethod
    def from_bytes(cls, stream: str, head: bytes, page: bytes) -> ShardSplit:
        return cls(stream, decode(page) if page else pl.DataFrame(), *values.decode(head, "the head of a page"))
