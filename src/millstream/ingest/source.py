"""The front end of one stream, before sharding: it stamps tuples, derives punctuation, and separates late tuples.

| | |
|---|---|
| accepts | elements in order: rows in any form, lines of text, patterns, punctuated rows |
| emits | chunks of a few pages, each followed by the punctuations among its tuples; late tuples; bad rows |
| a tuple is late | iff a promise before it matches it: explicit, derived, implied by order, or a promised ETS |
| WATERMARK | after each tuple that raises the highest timestamp: `[ts < highest - delay]` |
| PRIMARY KEY | after each tuple: `[key = value]` |
| ASCENDING | after each tuple that raises the highest value of the column: `[column < value]` |
| ORDER BY alone | each tuple implies `[ts < its ts]`, which is never emitted |
| timestamps | external: the time column; internal and latent: the clock on entry, never decreasing |
| ETS (enabling timestamp) | in order: last timestamp + time since its arrival - MAX SKEW; internal, latent: the clock |
| punctuation covered by an earlier one | dropped |

Late tuples do not count: they advance neither the watermark nor the order, and register no key. All operations run over
whole columns, for any number of punctuations among the tuples. The output does not depend on how the input is cut.

A batch without an order among its tuples is sorted by time and judged by what was promised before it; its own tuples
promise something only at its end. So which tuples are late depends on the batches. Of equal keys all but the first are
late, as ever.

>>> from millstream.algebra.clock import VirtualClock
>>> from millstream.algebra.schema import Schema
>>> from millstream.algebra.types import Type
>>> bids = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
>>> source = StreamSource(StreamDefinition("bids", bids), VirtualClock())
>>> taken = source.take(["5 | 1", "7 | 2", "6 | 3", "[< 9, *]", "8 | x"])
>>> taken.elements
[Page([(5, 1, 5), (7, 2, 7)]), Punctuations([ts < 9] progress 9)]
>>> taken.late.rows(), taken.bad.rows()
([(6, 3, 0)], [('8 | x', "column 'k': 'x' is not a value of type BIGINT", 0)])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.clock import Clock
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS, TimeKind
from millstream.algebra.types import MICROS
from millstream.ingest.arrivals import Arrivals, PunctuatedRows, gather
from millstream.ingest.ascending import Ascending, highest_before
from millstream.ingest.kept import SchemeWatch
from millstream.ingest.losses import Losses, bad_rows, late_rows
from millstream.ingest.placed_punctuations import NO_KEY, TIME_LIMIT, PlacedPunctuations, integers
from millstream.ingest.promises import Promises, time_column
from millstream.ingest.rows import BAD_SCHEMA, NO_BAD
from millstream.ingest.split_summary import SplitSummary, slack_of
from millstream.logical.catalog import StreamDefinition
from millstream.runtime.operator.keys import numbers

__all__ = ["PunctuatedRows", "StreamSource", "Taken"]

PAGE_ROWS = 8192
PAGES_IN_A_CHUNK = 16
"""Rows are emitted in chunks of this many pages, which readers take page by page; one by one if a page is one row."""
EXACT_ROWS = 256
"""A batch of at most this many rows keeps the exact order of its tuples and punctuations."""
_NOTHING = Punctuations.of(())
_NO_BAD = NO_BAD.with_columns(pl.lit(0, pl.Int64).alias(TS))


@dataclass(frozen=True, slots=True)
class Taken:
    """The output of a source for a batch. Late and bad rows are stamped with the time of entry."""

    elements: list[Element]
    late: pl.DataFrame
    bad: pl.DataFrame


class StreamSource:
    """The source of a declared stream. `accepted`, `late` and `bad` count rows."""

    def __init__(self, stream: StreamDefinition, clock: Clock, page_rows: int = PAGE_ROWS) -> None:
        self.schema = schema = stream.schema
        self.accepted = self.late = self.bad = 0
        self._clock = clock
        self._chunk_rows = page_rows * PAGES_IN_A_CHUNK if page_rows > 1 else 1
        self._no_rows = schema.empty()
        self._watermark, self._max_skew = stream.watermark, stream.max_skew
        self._key = list(stream.primary_key)
        self._time = time_column(schema)
        self._ascending = Ascending(stream.ascending)
        self._required = stream.required
        self._slack = slack_of(schema, stream.watermark)
        self._in_order = self._slack is not None and stream.watermark is None
        self._promises = Promises(schema)
        self._newest = NEVER  # the highest timestamp of an accepted tuple
        self._last: tuple[int, int] | None = None  # the last timestamp and its arrival time
        self._promised = NEVER  # the highest enabling timestamp promised
        self._restricted: set[str] | None = None  # columns restricted by explicit punctuation, except bounds on time
        self._losses, self._reported = Losses(), (0, 0, 0)  # since the last `take_losses`, and the counts then
        self._scheme = SchemeWatch(stream.sent)

    def take(self, elements: Iterable[Any], summary: SplitSummary | None = None, *, unordered: bool = False) -> Taken:
        """Take a batch. A pattern that does not fit raises PatternError, and then nothing of the batch is taken. With a
        `summary` (see `knows`) the rows are only a part of a split, and time advances as in the whole split. Rows that
        are `unordered` are sorted by time and judged by what was promised before the batch."""
        arrivals = gather(elements, self.schema, self._required)
        now = self._clock.now()
        rows, placed = arrivals.rows, arrivals.placed
        if unordered and self._time is not None:
            rows = rows.sort(self._time, maintain_order=True)
        stamps, keys = self._stamps(rows, now), placed.keys(self._time)
        if (keys == NO_KEY).any():
            self._restricted = placed.columns | (self._restricted or set())
        floor = self._floor
        if self._all_in_order(stamps, placed):
            accepted = np.ones(len(stamps), dtype=np.bool_)
        else:
            accepted = self._judge(rows, stamps, self._promises.broken(rows, stamps, placed, keys), unordered)
            derived = self._derive(rows, stamps, accepted, summary, unordered)
            if derived:
                placed = PlacedPunctuations.interleave([*derived, placed])
                keys = placed.keys(self._time)
        self._scheme.take(arrivals.placed, rows.height, now)
        rows = rows.hstack([self._hidden(rows, stamps)])
        elements = self._chunks(rows, accepted, placed, keys)
        clean = bool(accepted.all())
        entered = pl.lit(now, pl.Int64).alias(TS)
        late, bad = self._no_rows, _NO_BAD
        if not clean:
            late = rows.filter(~pl.Series(accepted, dtype=pl.Boolean)).with_columns(entered)
            self._losses += self._why_late(rows, stamps, accepted, unordered)
        if arrivals.bad.height:
            bad = arrivals.bad.select(*BAD_SCHEMA, entered)
            self._losses += bad_rows(arrivals.bad)
        self._count(stamps if clean else stamps[accepted], now)
        self._ascending.count(rows, accepted, {} if summary is None else summary.spans)
        if summary is not None and summary.rows:
            self._count_split(summary, now, floor)
        self.late += late.height
        self.bad += bad.height
        return Taken(elements, late, bad)

    def knows(self, summary: SplitSummary, *, folded: bool) -> bool:
        """Return whether the summary of a split suffices to judge a part of its rows. `folded` rows are absent; with
        them, or with an ascending column, no row of the split may be late. Otherwise the part is judged by itself,
        provided that other rows advance time only if time does not make them late."""
        if folded or self._ascending:
            return self._restricted is None and not self._key and (not summary.rows or self._fits(summary))
        return not self._key and (self._restricted is None or self._slack is None)

    def judges(self, columns: Iterable[str]) -> bool:
        """Return whether these columns suffice to find the late rows."""
        return (self._restricted or set()) <= set(columns)

    def _fits(self, summary: SplitSummary) -> bool:
        """Return whether no row of the split is late."""
        if self._time is not None:
            oldest = summary.spans[self._time].lowest
            if oldest < self._floor or (self._slack is not None and oldest + self._slack < self._newest):
                return False
        return self._ascending.fits(summary.spans)

    @property
    def _floor(self) -> int:
        """Lower bound on the time of later tuples, by all promises except the order."""
        return max(self._promised, self._promises.bound)

    def _hidden(self, rows: pl.DataFrame, stamps: Integers) -> pl.Series:
        """Return the column of hidden timestamps; that of an external stream shares memory with the time column."""
        if self._time is not None:
            return rows.get_column(self._time).cast(pl.Int64).alias(TS)
        return pl.Series(TS, stamps, dtype=pl.Int64)

    def _stamps(self, rows: pl.DataFrame, now: int) -> Integers:
        if self._time is not None:
            return integers(rows.get_column(self._time))
        return np.full(rows.height, max(now, self._promised, self._newest), dtype=np.int64)

    def _all_in_order(self, stamps: Integers, placed: PlacedPunctuations) -> bool:
        """True if the whole batch is accepted without judging: an ordered stream, no keys, no promises, in order."""
        if not self._in_order or len(placed) or not self._promises.none or not len(stamps):
            return False
        if self._key or self._ascending:
            return False
        return int(stamps[0]) >= max(self._newest, self._promised) and bool((stamps[1:] >= stamps[:-1]).all())

    def _judge(self, rows: pl.DataFrame, stamps: Integers, broken: Mask, unordered: bool) -> Mask:
        """Return a mask of the accepted tuples.

        Whether a tuple is late depends on the tuples accepted before it. Each round judges all tuples by the outcome of
        the previous round; a round without changes is the outcome of judging one by one. Of unordered tuples none is
        before another, and one round is enough.
        """
        fits = ~broken
        if self._time is not None and self._promised > NEVER:
            fits &= stamps >= self._promised
        accepted = np.zeros_like(fits) if unordered else fits
        while True:
            judged = fits.copy()
            if self._slack is not None:
                before = highest_before(self._newest, stamps, accepted)
                judged &= (before == NEVER) | (stamps >= np.maximum(before, -TIME_LIMIT) - self._slack)
            if self._ascending:
                judged &= self._ascending.judge(rows, accepted)
            if self._key:
                # As in the next batch, where punctuation has the keys so far, which matches no NaN.
                keys = rows.select(self._key)
                places = np.flatnonzero(judged & numbers(keys).to_numpy())
                judged[places] = keys[places].select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
            if unordered or np.array_equal(judged, accepted) or not (self._key or self._ascending):
                return judged
            accepted = judged

    def _why_late(self, rows: pl.DataFrame, stamps: Integers, accepted: Mask, unordered: bool) -> Losses:
        """Describe the late tuples, before the accepted ones are counted."""
        none, causes = np.zeros_like(accepted), {}
        before = highest_before(self._newest, stamps, none if unordered else accepted)
        if self._slack is not None:
            causes["order"] = (before > NEVER) & (stamps < np.maximum(before, -TIME_LIMIT) - self._slack)
        if self._time is not None:
            causes["skew"] = stamps < self._promised
        if self._ascending:
            causes["ascending"] = ~self._ascending.judge(rows, none if unordered else accepted)
        causes["key" if self._key and self._restricted is None else "punctuation"] = ~none
        return late_rows(stamps, before, ~accepted, causes)

    def take_losses(self) -> Losses:
        """Return the rows taken since the last call, and what is known of the late and bad ones among them."""
        counts, before = (self.accepted, self.late, self.bad), self._reported
        accepted, late, bad = (now - then for now, then in zip(counts, before, strict=True))
        found, self._losses, self._reported = self._losses, Losses(), counts
        return found + Losses(accepted, late, bad, kept=self._scheme.report())

    def _derive(
        self, rows: pl.DataFrame, stamps: Integers, accepted: Mask, summary: SplitSummary | None, unordered: bool
    ) -> list[PlacedPunctuations]:
        """Return the punctuations that the tuples imply, and at the end those that the summary of the split implies."""
        derived: list[PlacedPunctuations] = []
        if self._watermark is not None and self._time is not None:
            places = np.flatnonzero(accepted & (stamps > highest_before(self._newest, stamps, accepted)))
            derived.append(self._below(self._time, stamps[places], places + 1))
        derived += self._ascending.placed(rows, accepted)
        if unordered:
            derived = [placed.last_at(rows.height) for placed in derived]
        for column, span in () if summary is None else summary.spans.items():
            if column != self._time or self._watermark is not None:
                derived.append(self._below(column, np.array([span.highest]), np.array([rows.height])))
        if self._key:
            keys = rows.select(self._key).filter(pl.Series(accepted, dtype=pl.Boolean))
            derived.append(PlacedPunctuations.equalities(keys, np.flatnonzero(accepted) + 1))
        return derived

    def _below(self, column: str, highest: Integers, positions: Integers) -> PlacedPunctuations:
        if column == self._time:
            highest = np.maximum(highest - (self._watermark or 0), -TIME_LIMIT)
        bounds = pl.Series(highest, dtype=pl.Int64).cast(self.schema.type_of(column).polars)
        return PlacedPunctuations.below(column, bounds, positions)

    def _chunks(self, rows: pl.DataFrame, accepted: Mask, placed: PlacedPunctuations, keys: Integers) -> list[Element]:
        """Return the accepted tuples in chunks, each followed by the new punctuations up to its end."""
        elements: list[Element] = []
        clean, first = bool(accepted.all()), 0
        for start, end in self._cuts(rows.height, placed.positions):
            chunk = rows.slice(start, end - start)
            if not clean:
                chunk = chunk.filter(pl.Series(accepted[start:end], dtype=pl.Boolean))
            if chunk.height:
                elements.append(Page(chunk))
            last = int(placed.positions.searchsorted(end, side="right")) if first < len(keys) else first
            fresh = self._promises.add(placed.slice(first, last), keys[first:last]) if last > first else None
            if fresh:
                elements.append(fresh)
            first = last
        return elements

    def _cuts(self, height: int, positions: Integers) -> Iterator[tuple[int, int]]:
        """Return the bounds of the chunks. A short batch is cut at every punctuation, so that its elements keep their
        exact order; in a long one punctuations wait for the end of their chunk."""
        ends = set(range(self._chunk_rows, height, self._chunk_rows)) | {height}
        if height <= EXACT_ROWS:
            ends |= set(positions.tolist())
        return pairwise([0, *sorted(ends)])

    def _count(self, stamps: Integers, now: int) -> None:
        if len(stamps):
            self.accepted += len(stamps)
            last = int(stamps[-1])
            self._newest = max(self._newest, last if self._in_order else int(stamps.max()))
            self._last = (last, now)

    def _count_split(self, summary: SplitSummary, now: int, floor: int) -> None:
        """Advance to the time of a split. Its newest tuple counts unless it is late."""
        newest = summary.spans[self._time].highest if self._time is not None else max(now, self._promised)
        if newest >= max(self._newest, floor):
            self._newest, self._last = newest, (newest, now)

    @property
    def ended(self) -> bool:
        """True once a promise excludes all later tuples."""
        return self._promises.ended

    @property
    def stamped(self) -> bool:
        """True if the clock is the time of its tuples, so that promising the clock makes no tuple late."""
        return self._time is None

    @property
    def newest(self) -> int | None:
        """The highest timestamp accepted, if timestamps come from the time column."""
        return None if self._time is None or self._newest == NEVER else self._newest

    def order(self) -> Punctuations | None:
        """Return what the order of an ordered stream promises after the tuples taken so far, as progress alone."""
        if not self.schema.ordered or self.schema.kind is TimeKind.LATENT or self._newest == NEVER:
            return None
        return Punctuations.of((), progress=self._newest)

    def gathered(self, elements: Iterable[Any]) -> Arrivals:
        """Return the arrivals of a batch, before they are judged."""
        return gather(elements, self.schema, self._required)

    @property
    def known(self) -> int:
        """The time that tuples or punctuation have reached."""
        return max(self._newest, self._promises.progress)

    @property
    def reached(self) -> int:
        """The time that readers know by now, of the order and of punctuation: no later tuple is older."""
        order = self.order()
        return max(self._promises.progress, NEVER if order is None else order.progress)

    @property
    def closed(self) -> Punctuations:
        """The punctuation that readers know by now, but for bounds on time and the end of the stream."""
        return _NOTHING if self._promises.none or self.ended else self._promises.closed()

    def ets(self) -> int | None:
        """Promise an enabling timestamp: from now on, older tuples are late. None if the source cannot promise any."""
        now = self._clock.now()
        if self._time is None:
            promise = max(now, self._newest)
        elif self._max_skew is None or self._last is None or not self._in_order:
            return None  # without order, only punctuation advances time
        else:
            last, arrived = self._last
            promise = last + (now - arrived) * self.schema.unit // MICROS - self._max_skew
        self._promised = max(self._promised, promise)
        return self._promised

    def snapshot(self) -> dict[str, Any]:
        """Return all state, as values."""
        return {
            "promises": self._promises.to_value(),
            "newest": self._newest,
            "last": self._last,
            "promised": self._promised,
            "restricted": self._restricted,
            "ascending": self._ascending.to_value(),
            "counts": (self.accepted, self.late, self.bad),
        }

    def restore(self, values: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._promises.restore(values["promises"])
        self._newest, self._last, self._promised = values["newest"], values["last"], values["promised"]
        self._restricted = values["restricted"]
        self._ascending.restore(values["ascending"])
        self.accepted, self.late, self.bad = values["counts"]
        self._losses, self._reported = Losses(), (self.accepted, self.late, self.bad)
