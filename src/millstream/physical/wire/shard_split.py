"""A shard's share of a split of a stream, its encoding, and the shards that it is for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from millstream.algebra import values
from millstream.algebra.early import Prod
from millstream.algebra.schema import NEVER, Schema
from millstream.algebra.values import value
from millstream.ingest.arrivals import CheckedRows
from millstream.ingest.paged.wanted import NONE_SKIPPED, Skipped, rows_and_punctuations
from millstream.ingest.placed_punctuations import TIME_LIMIT, PlacedPunctuations, integers
from millstream.ingest.source import StreamSource
from millstream.ingest.split_summary import SplitSummary, summary_of
from millstream.physical.plan.partial import Partial
from millstream.physical.plan.placeholders import Counted
from millstream.physical.wire.codec import decode, encode
from millstream.physical.wire.own_rows import OWN, OwnRows
from millstream.physical.wire.stretches import Passed


@value("partial_stream")
@dataclass(frozen=True, slots=True)
class PartialStream:
    """A stream of partial groups: its name, and the columns it is hashed on (None: one shard reads all of it)."""

    name: str
    partial: Partial
    key: tuple[str, ...] | None


@value("target")
@dataclass(frozen=True, slots=True)
class Target:
    """The shards of one group that read a stream. `key`: the stream is hashed on these columns; None: every shard reads
    all of it. `raw`: queries read the rows themselves; `partials`: the partial streams that they read; `counted`: the
    columns that a shard needs of rows that are not its own."""

    labels: tuple[int, ...]
    key: tuple[str, ...] | None
    raw: bool = True
    partials: tuple[PartialStream, ...] = ()
    counted: Counted | None = None


@dataclass(frozen=True, slots=True)
class ShardSplit:
    """A shard's share of a split. With `summary`: its own rows, or partial groups by stream in their place. Without it:
    the rows of all shards; `own` finds the shard's own among them. Rows that no reader wants may be absent."""

    stream: str
    rows: pl.DataFrame
    own: OwnRows
    count: int
    """Number of rows that this shard counts as read; the first shard counts rows that go to every shard."""
    summary: SplitSummary | None = None
    placed: PlacedPunctuations | None = None
    bad: pl.DataFrame | None = None
    partials: dict[str, pl.DataFrame] = field(default_factory=dict)
    common: pl.DataFrame | None = None
    """The columns that every shard needs, for all rows of the split, with the mask of those that are in `rows`; None:
    `rows` is all there is."""
    now: int = 0
    """The time of the batch, for rows of DataFrames; 0: the control records have it."""
    partition: int | None = None
    """The number of the DataFrame's partition that the rows are from."""
    failed: dict[str, str] = field(default_factory=dict)
    """The stream, or the partial streams, that could not be read or aggregated, each with its error as text."""
    skipped: Skipped = NONE_SKIPPED
    """What was left out of the split, or has been tested, because no reader wants it; the first shard has it."""
    absent: bool = False
    """True if unwanted rows of the split are neither in `rows` nor in `common`."""
    prods: tuple[Prod, ...] = ()
    """The prods of the stream right before these rows."""
    stretch: int = 0
    """The number of these rows among those that prods separate in the split."""
    passed: Passed = ()
    """The marks of time that may be passed right before these rows."""
    unordered: bool = False
    """True if the rows have no order: those of several partitions."""

    def elements(self) -> list[CheckedRows]:
        return [CheckedRows(self.filled().rows, self.placed, self.bad)]

    def lowest(self, time: str | None) -> int:
        """Return the time of the oldest row of the whole split; NEVER if it is not known."""
        if time is None:
            return NEVER
        if self.summary is not None:
            return self.summary.spans[time].lowest if self.summary.rows else NEVER
        rows = self.common if self.common is not None else self.rows
        return int(integers(rows.get_column(time)).min()) if rows.height and time in rows.columns else NEVER

    def judged_by(self, source: StreamSource) -> ShardSplit:
        """Return the split in a form that this source can judge: unchanged, or with the complete rows of all shards."""
        if self.summary is not None:
            enough = source.knows(self.summary, folded=self.absent or bool(self.partials))
        else:
            enough = self.common is None or source.judges(self.common.columns)
        return self if enough else self.unfolded()

    def unfolded(self) -> ShardSplit:
        """Return the split with the rows of all shards, read again if some are missing; if the split cannot be read
        again, with what is known of them."""
        if self.own.split is None or (self.summary is None and self.common is None):
            return self.filled()
        rows, placed = rows_and_punctuations(self.own.split.read(self.own.columns).rows)
        return replace(self, rows=rows, summary=None, placed=placed, partials={}, common=None, absent=False)

    def filled(self) -> ShardSplit:
        """Return the split with the rows of all shards; columns that only a row's own shard has are NULL."""
        if self.common is None:
            return self
        common, rest = self.common.drop(OWN), self.rows.drop(self.common.columns, strict=False)
        own = self.common.get_column(OWN)
        if not rest.columns:
            return replace(self, rows=common.select(self.rows.columns), common=None)
        place = pl.select(pl.when(own).then(own.cast(pl.Int64).cum_sum() - 1)).to_series()
        rows = common.hstack(rest.select(pl.all().gather(place))).select(self.rows.columns)
        return replace(self, rows=rows, common=None)

    def cut(self, first: int, last: int, end: int | None, schema: Schema) -> ShardSplit:
        """Return the rows from `first` to `last` alone, with the time of the rows before `end` and the punctuations
        before it; None: with all time and all punctuations."""
        place, known = np.arange(self.rows.height), self.rows if end is None else self.rows.head(end)
        mine = (place >= first) & (place < last) & self.own.owned(self.rows)
        placed = self.placed if self.placed is None or end is None else self.placed.keep(self.placed.positions < end)
        summary = self.summary if end is None else None
        return replace(
            self,
            rows=self.rows.filter(pl.Series(mine)),
            own=replace(self.own, split=None),
            summary=summary or summary_of(known, None, schema, TIME_LIMIT),
            placed=None if placed is None else placed.among(mine),
            bad=self.bad if end is None else None,
        )

    def to_bytes(self) -> tuple[bytes, bytes]:
        """Head and page."""
        share = self.own, self.count, self.summary, self.placed, self.bad
        head = *share, self.partials, self.common, self.now, self.partition, self.failed, self.skipped, self.absent
        prods = (self.prods, self.stretch, self.passed) if self.prods or self.stretch or self.passed else ()
        return values.encode((*head, *prods)), encode(self.rows) if self.rows.columns else b""

    @classmethod
    def from_bytes(cls, stream: str, head: bytes, page: bytes) -> ShardSplit:
        return cls(stream, decode(page) if page else pl.DataFrame(), *values.decode(head, "the head of a page"))
