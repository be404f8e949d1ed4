"""The front end of one stream, before sharding: it stamps tuples, derives punctuation, and puts late tuples aside.

| | |
|---|---|
| takes | elements in order: rows in any form, lines of text, patterns, punctuated rows |
| gives | pieces of a few pages, each followed by the punctuations among its tuples; late tuples; bad rows |
| a tuple is late | iff a promise before it matches it: explicit, derived, implied by order, or an ETS given out |
| WATERMARK | after each tuple that raises the highest timestamp: `[ts < highest - delay]` |
| PRIMARY KEY | after each tuple: `[key = value]` |
| ASCENDING | after each tuple that raises the highest value of the column: `[column < value]` |
| ORDER BY alone | each tuple implies `[ts < its ts]`, which is never put out |
| timestamps | external: the time column; internal and latent: the clock on entry, never decreasing |
| ETS (enabling timestamp) | in order: last timestamp + time since it came - MAX SKEW; internal, latent: the clock |
| punctuation covered by an earlier one | not put out again |

Late tuples do not count: they move neither the watermark nor the order, and register no key. All of it runs over whole
columns, however many punctuations stand among the tuples; what comes out does not depend on how the input is cut.

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
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.clock import Clock
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS, TimeKind
from millstream.algebra.types import MICROS
from millstream.ingest.arrivals import PunctuatedRows, gather
from millstream.ingest.ascending import Ascending, highest_before
from millstream.ingest.placed_punctuations import NO_KEY, TIME_LIMIT, PlacedPunctuations, integers
from millstream.ingest.promises import Promises
from millstream.ingest.rows import NO_BAD
from millstream.ingest.split_summary import SplitSummary, slack_of
from millstream.logical.catalog import StreamDefinition

__all__ = ["PunctuatedRows", "StreamSource", "Taken"]

PAGE_ROWS = 8192
PAGES_IN_A_PIECE = 16
"""Rows are put out in pieces of so many pages, which readers take page by page; one by one if a page is one row."""
EXACT_ROWS = 256
"""Up to so many rows, a batch keeps the order of its tuples and punctuations exactly."""
_NO_BAD = NO_BAD.with_columns(pl.lit(0, pl.Int64).alias(TS))


@dataclass(frozen=True, slots=True)
class Taken:
    """What a source makes of a batch. Late and bad rows are stamped with the time of entry."""

    elements: list[Element]
    late: pl.DataFrame
    bad: pl.DataFrame


class StreamSource:
    """The source of a stream as it was declared. `accepted`, `late` and `bad` count rows."""

    def __init__(self, stream: StreamDefinition, clock: Clock, page_rows: int = PAGE_ROWS) -> None:
        self.schema = schema = stream.schema
        self.accepted = self.late = self.bad = 0
        self._clock = clock
        self._piece_rows = page_rows * PAGES_IN_A_PIECE if page_rows > 1 else 1
        self._no_rows = schema.empty()
        self._watermark, self._max_skew = stream.watermark, stream.max_skew
        self._key = list(stream.primary_key)
        self._time = schema.time if schema.kind is TimeKind.EXTERNAL else None
        self._ascending = Ascending(stream.ascending)
        self._required = [*([self._time] if self._time is not None else []), *stream.primary_key, *stream.ascending]
        self._slack = slack_of(schema, stream.watermark)  # by how much a tuple may be older than one before it
        self._in_order = self._slack is not None and stream.watermark is None
        self._promises = Promises(self._time, None if self._time is None else schema.type_of(self._time).polars)
        self._newest = NEVER  # the highest timestamp of an accepted tuple
        self._last: tuple[int, int] | None = None  # the last timestamp and when it came
        self._promised = NEVER  # the highest enabling timestamp given out
        self._restricted: set[str] | None = None  # columns that explicit punctuation restricts, bounds on time aside

    def take(self, elements: Iterable[Any], whole: SplitSummary | None = None) -> Taken:
        """Take a batch. A pattern that does not fit raises PatternError, and then nothing of the batch is taken. With
        `whole` the rows are only a part of a piece that it `knows`, and time moves as all of it says."""
        arrivals = gather(elements, self.schema, self._required)
        now = self._clock.now()
        rows, placed = arrivals.rows, arrivals.placed
        stamps, keys = self._stamps(rows, now), self._promises.keys(placed)
        if (keys == NO_KEY).any():
            self._restricted = placed.columns | (self._restricted or set())
        floor = self._floor
        if self._all_in_order(stamps, placed):
            accepted = np.ones(len(stamps), dtype=np.bool_)
        else:
            accepted = self._judge(rows, stamps, self._promises.broken(rows, stamps, placed, keys))
            derived = self._derive(rows, stamps, accepted, whole)
            if derived:
                placed = PlacedPunctuations.interleave([*derived, placed])
                keys = self._promises.keys(placed)
        rows = rows.hstack([self._hidden(rows, stamps)])
        made = self._pieces(rows, accepted, placed, keys)
        clean = bool(accepted.all())
        entered = pl.lit(now, pl.Int64).alias(TS)
        late, bad = self._no_rows, _NO_BAD
        if not clean:
            late = rows.filter(~pl.Series(accepted, dtype=pl.Boolean)).with_columns(entered)
        if arrivals.bad.height:
            bad = arrivals.bad.with_columns(entered)
        self._count(stamps if clean else stamps[accepted], now)
        self._ascending.count(rows, accepted, {} if whole is None else whole.spans)
        if whole is not None and whole.rows:
            self._count_whole(whole, now, floor)
        self.late += late.height
        self.bad += bad.height
        return Taken(made, late, bad)

    def knows(self, whole: SplitSummary, *, folded: bool) -> bool:
        """Whether word of a piece tells enough. Of `folded` rows, which are not at hand, and where a column ascends,
        none may be late. Otherwise the rows of a part are judged by themselves, as long as other rows move time only if
        time does not make them late."""
        if folded or self._ascending:
            return self._restricted is None and not self._key and (not whole.rows or self._fits(whole))
        return not self._key and (self._restricted is None or self._slack is None)

    def judges(self, columns: Iterable[str]) -> bool:
        """Whether these columns tell which rows are late."""
        return (self._restricted or set()) <= set(columns)

    def _fits(self, whole: SplitSummary) -> bool:
        """Whether none of these rows is late."""
        if self._time is not None:
            oldest = whole.spans[self._time].lowest
            if oldest < self._floor or (self._slack is not None and oldest + self._slack < self._newest):
                return False
        return self._ascending.fits(whole.spans)

    @property
    def _floor(self) -> int:
        """No tuple below this time is expected any more, by what was promised apart from the order."""
        return max(self._promised, self._promises.bound)

    def _hidden(self, rows: pl.DataFrame, stamps: Integers) -> pl.Series:
        """The column of hidden timestamps; that of an external stream shares memory with the time column."""
        if self._time is not None:
            return rows.get_column(self._time).cast(pl.Int64).alias(TS)
        return pl.Series(TS, stamps, dtype=pl.Int64)

    def _stamps(self, rows: pl.DataFrame, now: int) -> Integers:
        if self._time is not None:
            return integers(rows.get_column(self._time))
        return np.full(rows.height, max(now, self._promised, self._newest), dtype=np.int64)

    def _all_in_order(self, stamps: Integers, placed: PlacedPunctuations) -> bool:
        """Whether the batch is plainly right: an ordered stream, no keys, nothing promised, nothing out of order."""
        if not self._in_order or len(placed) or not self._promises.none or not len(stamps):
            return False
        if self._key or self._ascending:
            return False
        return int(stamps[0]) >= max(self._newest, self._promised) and bool((stamps[1:] >= stamps[:-1]).all())

    def _judge(self, rows: pl.DataFrame, stamps: Integers, broken: Mask) -> Mask:
        """Which tuples are accepted.

        Whether a tuple is late depends on those accepted before it. Each round judges all tuples by the outcome of
        the round before; once a round changes nothing, that is the outcome of judging one by one.
        """
        fits = ~broken
        if self._time is not None and self._promised > NEVER:
            fits &= stamps >= self._promised
        accepted = fits
        while True:
            judged = fits.copy()
            if self._slack is not None:
                before = highest_before(self._newest, stamps, accepted)
                judged &= (before == NEVER) | (stamps >= np.maximum(before, -TIME_LIMIT) - self._slack)
            if self._ascending:
                judged &= self._ascending.kept(rows, accepted)
            if self._key:
                places = np.flatnonzero(judged)
                keys = rows.select(self._key).filter(pl.Series(judged, dtype=pl.Boolean))
                judged[places] = keys.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
            if np.array_equal(judged, accepted) or not (self._key or self._ascending):
                return judged
            accepted = judged

    def _derive(
        self, rows: pl.DataFrame, stamps: Integers, accepted: Mask, whole: SplitSummary | None
    ) -> list[PlacedPunctuations]:
        """The punctuations that follow from the tuples themselves, and at their end those that follow from a whole."""
        made: list[PlacedPunctuations] = []
        if self._watermark is not None and self._time is not None:
            places = np.flatnonzero(accepted & (stamps > highest_before(self._newest, stamps, accepted)))
            made.append(self._below(self._time, stamps[places], places + 1))
        made += self._ascending.placed(rows, accepted)
        for column, span in () if whole is None else whole.spans.items():
            if column != self._time or self._watermark is not None:
                made.append(self._below(column, np.array([span.highest]), np.array([rows.height])))
        if self._key:
            keys = rows.select(self._key).filter(pl.Series(accepted, dtype=pl.Boolean))
            made.append(PlacedPunctuations.equalities(keys, np.flatnonzero(accepted) + 1))
        return made

    def _below(self, column: str, highest: Integers, positions: Integers) -> PlacedPunctuations:
        if column == self._time:
            highest = np.maximum(highest - (self._watermark or 0), -TIME_LIMIT)
        bounds = pl.Series(highest, dtype=pl.Int64).cast(self.schema.type_of(column).polars)
        return PlacedPunctuations.below(column, bounds, positions)

    def _pieces(self, rows: pl.DataFrame, accepted: Mask, placed: PlacedPunctuations, keys: Integers) -> list[Element]:
        made: list[Element] = []
        clean, first = bool(accepted.all()), 0
        for start, end in self._cuts(rows.height, placed.positions):
            piece = rows.slice(start, end - start)
            if not clean:
                piece = piece.filter(pl.Series(accepted[start:end], dtype=pl.Boolean))
            if piece.height:
                made.append(Page(piece))
            last = int(placed.positions.searchsorted(end, side="right")) if first < len(keys) else first
            fresh = self._promises.add(placed.slice(first, last), keys[first:last]) if last > first else None
            if fresh:
                made.append(fresh)
            first = last
        return made

    def _cuts(self, height: int, positions: Integers) -> Iterator[tuple[int, int]]:
        """Where pieces begin and end. A short batch is cut at every punctuation, so that its elements keep their order
        exactly; in a long one punctuations wait for the end of their piece."""
        ends = set(range(self._piece_rows, height, self._piece_rows)) | {height}
        if height <= EXACT_ROWS:
            ends |= set(positions.tolist())
        start = 0
        for end in sorted(ends):
            yield start, end
            start = end

    def _count(self, stamps: Integers, now: int) -> None:
        if len(stamps):
            self.accepted += len(stamps)
            last = int(stamps[-1])
            self._newest = max(self._newest, last if self._in_order else int(stamps.max()))
            self._last = (last, now)

    def _count_whole(self, whole: SplitSummary, now: int, floor: int) -> None:
        """Take note of the time of a whole. Its newest tuple counts unless it is late."""
        newest = whole.spans[self._time].highest if self._time is not None else max(now, self._promised)
        if newest >= max(self._newest, floor):
            self._newest, self._last = newest, (newest, now)

    @property
    def ended(self) -> bool:
        """Whether a promise has excluded everything."""
        return self._promises.ended

    @property
    def newest(self) -> int | None:
        """The highest timestamp seen, if the tuples bring theirs with them."""
        return None if self._time is None or self._newest == NEVER else self._newest

    def order(self) -> Punctuations | None:
        """What the order of an ordered stream promises after the tuples taken so far, as progress alone."""
        if not self.schema.ordered or self.schema.kind is TimeKind.LATENT or self._newest == NEVER:
            return None
        return Punctuations.of((), progress=self._newest)

    def ets(self) -> int | None:
        """An enabling timestamp: a promise that no later tuple is older, kept from now on. None if there is none."""
        now = self._clock.now()
        if self._time is None:
            promise = max(now, self._newest)
        elif self._max_skew is None or self._last is None or not self._in_order:
            return None  # where tuples come in any order only punctuation moves time
        else:
            last, came = self._last
            promise = last + (now - came) * self.schema.unit // MICROS - self._max_skew
        self._promised = max(self._promised, promise)
        return self._promised

    def snapshot(self) -> dict[str, Any]:
        """All state, as values."""
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
        """Go on where a snapshot was taken."""
        self._promises.restore(values["promises"])
        self._newest, self._last, self._promised = values["newest"], values["last"], values["promised"]
        self._restricted = values["restricted"]
        self._ascending.restore(values["ascending"])
        self.accepted, self.late, self.bad = values["counts"]
