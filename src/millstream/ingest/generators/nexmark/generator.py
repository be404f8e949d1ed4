"""The auction site of the Nexmark benchmark: persons join, auctions open and close, persons bid.

| | |
|---|---|
| in 50 events | 1 person, 3 auctions, 46 bids |
| identifiers | from 1000 on, without gaps, in the order of events |
| sellers, bidders | persons that have joined; the hot one, or one of the last thousand |
| a bid | is on an auction that is open at that event (`auctions`) |
| punctuation on `bid` | `[auction = id]` when the auction closes, before the first event that finds it closed |
| `expires` of an auction | the time of that event |
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from millstream.algebra.arrays import Integers
from millstream.algebra.types import MICROS, Type, format_value, micros, parse_timestamp
from millstream.errors import OptionError
from millstream.ingest.generators.base import TIME, Column, Generator
from millstream.ingest.generators.draws import Draws
from millstream.ingest.generators.nexmark.auctions import AUCTIONS, FIRST_AUCTION, ROUND, SHORTEST_MEAN, Auctions
from millstream.ingest.generators.nexmark.values import channel_columns, item_columns, person_columns, prices
from millstream.ingest.generators.options import GeneratorOptions, Length, Moment, Names, Pace
from millstream.ingest.generators.timeline import Timeline
from millstream.ingest.placed_punctuations import PlacedPunctuations

_PLACES = {
    "person": (0, FIRST_AUCTION),
    "auction": (FIRST_AUCTION, FIRST_AUCTION + AUCTIONS),
    "bid": (FIRST_AUCTION + AUCTIONS, ROUND),
}
"""The events of a round that belong to each stream."""
_FIRST_ID = 1000
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_OPEN_AUCTIONS = 100
_ACTIVE = 1000
_HOT_UNIT = 100
"""One in this many persons is the hot seller, and the next person the hot bidder."""
_LONGEST_MEAN = 1 << 31


Ratio = Annotated[int, Field(ge=1, le=1000)]


class NexmarkOptions(GeneratorOptions):
    punctuations: ClassVar[frozenset[str]] = frozenset({"auction", "time"})

    start: Moment = Field(default=micros(parse_timestamp("2015-07-15")), description="event time of the first event")
    punctuation: Names = Field(default=frozenset({"auction"}), description="auction, time, both of them, or none")
    rate: Pace = Field(default=10_000, description="events per second of event time, over all streams")
    auction_duration: Length | None = Field(
        default=None, description="mean time that an auction is open; default: 100 auctions are open at a time"
    )
    hot_auctions: Ratio = Field(default=2, description="of n bids, n - 1 are on the hot auction")
    hot_bidders: Ratio = Field(default=4, description="of n bids, n - 1 are by the hot bidder")
    hot_sellers: Ratio = Field(default=4, description="of n auctions, n - 1 belong to the hot seller")

    def events_open(self) -> int:
        """Return the mean number of events that an auction is open."""
        if self.auction_duration is None:
            return _OPEN_AUCTIONS * ROUND // AUCTIONS
        mean = self.auction_duration * self.rate // MICROS
        if SHORTEST_MEAN <= mean <= _LONGEST_MEAN:
            return mean
        seconds = [format_value(bound / self.rate) for bound in (SHORTEST_MEAN, _LONGEST_MEAN)]
        message = f"option 'auction_duration' cannot be {format_value(self.auction_duration / MICROS)} seconds"
        hint = f"At {self.rate} events a second it is between {' and '.join(seconds)} seconds."
        raise OptionError("M6002", message, hint=hint)


class Nexmark(Generator):
    def __init__(self, options: NexmarkOptions) -> None:
        seed = options.seed
        self._timeline = Timeline(options.start, options.rate)
        self._auctions = Auctions(seed, options.events_open(), options.hot_auctions)
        self._bidders = _Choice(seed, "bidder", options.hot_bidders, 1)
        self._sellers = _Choice(seed, "seller", options.hot_sellers, 0)
        super().__init__(options, self._streams(seed))

    def _streams(self, seed: int) -> dict[str, list[Column]]:
        price, initial, reserve, category = (
            Draws(seed, purpose) for purpose in ("price", "initial bid", "reserve", "category")
        )
        time = Column(TIME, Type.TIMESTAMP, self._timeline.times)
        return {
            "person": [Column("id", Type.BIGINT, _person_ids), *person_columns(seed), time],
            "auction": [
                Column("id", Type.BIGINT, _auction_ids),
                *item_columns(seed),
                Column("initial_bid", Type.BIGINT, lambda events: prices(initial, events)),
                Column("reserve", Type.BIGINT, lambda events: prices(initial, events) + prices(reserve, events)),
                time,
                Column("expires", Type.TIMESTAMP, self._expire),
                Column("seller", Type.BIGINT, self._sellers.chosen),
                Column("category", Type.BIGINT, lambda events: _FIRST_CATEGORY + category.below(events, _CATEGORIES)),
            ],
            "bid": [
                Column("auction", Type.BIGINT, lambda events: self._auctions.chosen(events) + _FIRST_ID),
                Column("bidder", Type.BIGINT, self._bidders.chosen),
                Column("price", Type.BIGINT, lambda events: prices(price, events)),
                *channel_columns(seed),
                time,
            ],
        }

    def event_time(self, number: int) -> int:
        return self._timeline.time(number)

    def _keys(self, stream: str, first: int, last: int) -> Integers:
        """Return the keys of the rows, which are their event numbers."""
        low, high = _PLACES[stream]
        before, upto = _rows_before(stream, np.array([first, last]))
        rows: Integers = np.arange(before, upto, dtype=np.int64)
        rounds = rows // (high - low)
        return rows + (rounds * (ROUND - (high - low)) + low)

    def _placed(self, stream: str, first: int, last: int, rows: pl.DataFrame, *, final: bool) -> PlacedPunctuations:
        made = []
        if "auction" in self._options.punctuation and stream == "bid" and "auction" in rows.columns:
            auctions, closes = self._auctions.closing(first, last, final=final)
            made.append(PlacedPunctuations.equalities(pl.DataFrame({"auction": auctions + _FIRST_ID}), closes))
        if "time" in self._options.punctuation:
            made.append(self._timeline.bounds(first, last, self._options.punctuate_every, final=final))
        placed = PlacedPunctuations.interleave(made)
        positions = _rows_before(stream, placed.positions) - _rows_before(stream, np.array([first]))
        return PlacedPunctuations(placed.punctuations, positions)

    def _expire(self, events: Integers) -> Integers:
        return self._timeline.times(self._auctions.closes(_auction_ids(events) - _FIRST_ID))


class _Choice:
    """A person for each event: in `ratio - 1` of `ratio` events the hot person, else one of the last thousand."""

    def __init__(self, seed: int, purpose: str, ratio: int, shift: int) -> None:
        self._is_hot, self._any = Draws(seed, f"hot {purpose}"), Draws(seed, purpose)
        self._ratio, self._shift = ratio, shift

    def chosen(self, events: Integers) -> Integers:
        newest = events // ROUND
        hot = np.minimum(newest - newest % _HOT_UNIT + self._shift, newest)
        other = newest - self._any.below(events, np.minimum(newest + 1, _ACTIVE))
        return np.where(self._is_hot.below(events, self._ratio) > 0, hot, other) + _FIRST_ID


def _rows_before(stream: str, events: Integers) -> Integers:
    """Return the number of rows of the stream before each event."""
    low, high = _PLACES[stream]
    return events // ROUND * (high - low) + np.clip(events % ROUND, low, high) - low


def _person_ids(events: Integers) -> Integers:
    return _rows_before("person", events) + _FIRST_ID


def _auction_ids(events: Integers) -> Integers:
    return _rows_before("auction", events) + _FIRST_ID
