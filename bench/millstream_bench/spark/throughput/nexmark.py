"""Auction events by the rules of the Nexmark benchmark, as tables of a range of events.

| | |
|---|---|
| in 50 events | 1 person, 3 auctions, 46 bids |
| a bid's auction | half the time the hot one (of the newest hundred), else one of the last 100 or of the next 10 |
| bidder, seller | three times in four the hot one, else one of the last 1,000 persons or of the next 10 |
| price | between 100 and 100 million cents, every power of ten alike likely |
| channel | half the time one of four, else one of 10,000 |
| event time | evenly spaced |

A bid may name an auction that opens a moment later. Every part of the stream is drawn with a random generator of its
own, so a part does not depend on the length of the stream.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers

ROUND = 50
_PLACES = {"person": (0, 1), "auction": (1, 4), "bid": (4, ROUND)}
"""Events of a round by stream."""
STREAMS = tuple(_PLACES)
AUCTIONS = 3
"""Auctions in a round."""
START = 1_436_918_400_000_000
"""Event time of the first event: 2015-07-15, in microseconds."""
FIRST_ID = 1000
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_HOT_UNIT = 100
_IN_FLIGHT, _ACTIVE, _LEAD = 100, 1000, 10
_CHANNELS = pl.Series(["Google", "Facebook", "Baidu", "Apple", *(f"channel-{n}" for n in range(10_000))])
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_NAMES = pl.Series([" ".join(name) for name in product(_FIRST_NAMES, _LAST_NAMES)])
_CITIES = pl.Series(
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
)
_STATES = pl.Series(["AZ", "CA", "ID", "OR", "WA", "WY"])
_TIME = pl.Datetime("us")


def table(stream: str, first: int, last: int, *, rate: int, seed: int) -> pl.DataFrame:
    """The rows of one stream among the events from `first` up to, not including, `last`."""
    draw = np.random.default_rng((seed, STREAMS.index(stream), first))
    events = _events(stream, first, last)
    return {"person": _persons, "auction": _auctions, "bid": _bids}[stream](draw, events, rate)


def closing(stream: str, events: int, *, rate: int) -> pl.DataFrame:
    """One row an hour after `events` events: it matches nothing and moves time past all earlier rows."""
    key = {"person": "id", "auction": "id", "bid": "auction"}[stream]
    identifier = STREAMS.index(stream)  # below the first identifier, and different in each stream
    late = START + events * 1_000_000 // rate + 3_600_000_000
    row = table(stream, 0, ROUND, rate=rate, seed=0).head(1)
    return row.with_columns(pl.lit(identifier, pl.Int64).alias(key), pl.lit(late).cast(_TIME).alias("ts"))


def _events(stream: str, first: int, last: int) -> Integers:
    """The numbers of the stream's events in the range, which is made of whole rounds."""
    low, high = _PLACES[stream]
    rounds = np.arange(first // ROUND, last // ROUND, dtype=np.int64) * ROUND
    return (rounds[:, None] + np.arange(low, high, dtype=np.int64)).ravel()


def _times(events: Integers, rate: int) -> pl.Series:
    return pl.Series(START + events * 1_000_000 // rate).cast(_TIME)


def _persons(draw: np.random.Generator, events: Integers, rate: int) -> pl.DataFrame:
    count = len(events)
    return pl.DataFrame(
        {
            "id": events // ROUND + FIRST_ID,
            "name": _NAMES.gather(draw.integers(0, len(_NAMES), count)),
            "city": _CITIES.gather(draw.integers(0, len(_CITIES), count)),
            "state": _STATES.gather(draw.integers(0, len(_STATES), count)),
            "ts": _times(events, rate),
        }
    )


def _auctions(draw: np.random.Generator, events: Integers, rate: int) -> pl.DataFrame:
    count = len(events)
    people = events // ROUND
    hot = draw.integers(0, 4, count) > 0
    initial = _prices(draw, count)
    open_for = max(_IN_FLIGHT * ROUND // AUCTIONS * 1_000_000 // rate, 1)
    expires = START + events * 1_000_000 // rate + 1 + draw.integers(0, 2 * open_for, count)
    return pl.DataFrame(
        {
            "id": people * AUCTIONS + events % ROUND - 1 + FIRST_ID,
            "seller": np.where(hot, people // _HOT_UNIT * _HOT_UNIT, _someone(draw, people)) + FIRST_ID,
            "category": _FIRST_CATEGORY + draw.integers(0, _CATEGORIES, count),
            "initial_bid": initial,
            "reserve": initial + _prices(draw, count),
            "ts": _times(events, rate),
            "expires": pl.Series(expires).cast(_TIME),
        }
    )


def _bids(draw: np.random.Generator, events: Integers, rate: int) -> pl.DataFrame:
    count = len(events)
    people = events // ROUND
    newest = people * AUCTIONS + AUCTIONS - 1
    oldest = np.maximum(newest - _IN_FLIGHT, 0)
    on_hot, by_hot = draw.integers(0, 2, count) > 0, draw.integers(0, 4, count) > 0
    other = oldest + (draw.random(count) * (newest - oldest + 1 + _LEAD)).astype(np.int64)
    channel = np.where(draw.integers(0, 2, count) > 0, draw.integers(0, 4, count), draw.integers(4, 10_004, count))
    return pl.DataFrame(
        {
            "auction": np.where(on_hot, newest // _HOT_UNIT * _HOT_UNIT, other) + FIRST_ID,
            "bidder": np.where(by_hot, people // _HOT_UNIT * _HOT_UNIT + 1, _someone(draw, people)) + FIRST_ID,
            "price": _prices(draw, count),
            "channel": _CHANNELS.gather(channel),
            "ts": _times(events, rate),
        }
    )


def _someone(draw: np.random.Generator, newest: Integers) -> Integers:
    active = np.minimum(newest + 1, _ACTIVE)
    chosen: Integers = newest + 1 - active + (draw.random(len(newest)) * (active + _LEAD)).astype(np.int64)
    return chosen


def _prices(draw: np.random.Generator, count: int) -> Integers:
    prices: Integers = np.round(10.0 ** (draw.random(count) * 6.0) * 100.0).astype(np.int64)
    return prices
