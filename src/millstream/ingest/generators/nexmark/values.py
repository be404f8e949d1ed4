"""Payload columns of the auction benchmark: prices, names, cards, items, channels, addresses.

Texts are looked up in tables that are built once, so that a text column costs little more than a column of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from string import ascii_lowercase as letters

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.types import Type
from millstream.ingest.generators.base import Column
from millstream.ingest.generators.draws import MOST, Draws

_PRICE_STEPS = 4096
_PRICES = np.array([round(100 * 10.0 ** (6 * step / _PRICE_STEPS)) for step in range(_PRICE_STEPS + 1)])

_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_NAMES = pl.Series(map(" ".join, product(_FIRST_NAMES, _LAST_NAMES)))
_MAILBOXES = _NAMES.str.to_lowercase().str.replace(" ", ".", literal=True)
_CITIES = pl.Series(
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
)
_STATES = pl.Series(["AZ", "CA", "ID", "OR", "WA", "WY"])
_KINDS = ("antique", "blue", "brass", "carved", "folding", "hand-made", "large", "old", "painted", "rare", "small")
_THINGS = ("atlas", "bicycle", "camera", "chair", "clock", "globe", "guitar", "lamp", "radio", "table", "vase", "watch")
_ITEMS = pl.Series(map(" ".join, product(_KINDS, _THINGS)))
_CONDITIONS = pl.Series(["as new", "well kept", "some wear", "in need of repair", "sold as seen"])
_HOT_CHANNELS = ("Apple", "Google", "Facebook", "Baidu")
_CHANNELS = 10_000


def prices(draws: Draws, numbers: Integers) -> Integers:
    """Return prices between 100 and 100 million cents; all powers of ten are equally likely."""
    words = draws.words(numbers)
    step = (words >> np.uint64(52)).view(np.int64)
    part = ((words >> np.uint64(20)) & np.uint64(0xFFFFFFFF)).view(np.int64)
    low: Integers = _PRICES[step]
    return low + ((_PRICES[step + 1] - low) * part >> 32)


def person_columns(seed: int) -> list[Column]:
    """Return the columns of persons; the keys are event numbers."""
    name, host, city, state = (Draws(seed, f"{what} of a person") for what in ("name", "host", "city", "state"))
    digits = [Draws(seed, f"card of a person {part}") for part in range(4)]

    def address(persons: Integers) -> pl.Series:
        return _joined([_drawn(name, persons, _MAILBOXES), _drawn(host, persons, _hosts())], "@")

    def card(persons: Integers) -> pl.Series:
        return _joined([_drawn(draws, persons, _numerals()) for draws in digits], " ")

    return [
        Column("name", Type.VARCHAR, lambda persons: _drawn(name, persons, _NAMES)),
        Column("email_address", Type.VARCHAR, address),
        Column("credit_card", Type.VARCHAR, card),
        Column("city", Type.VARCHAR, lambda persons: _drawn(city, persons, _CITIES)),
        Column("state", Type.VARCHAR, lambda persons: _drawn(state, persons, _STATES)),
    ]


def item_columns(seed: int) -> list[Column]:
    """Return the columns of the goods for auction; the keys are event numbers."""
    item, condition = Draws(seed, "item"), Draws(seed, "condition of an item")

    def description(auctions: Integers) -> pl.Series:
        return _joined([_drawn(item, auctions, _ITEMS), _drawn(condition, auctions, _CONDITIONS)], ", ")

    return [
        Column("item_name", Type.VARCHAR, lambda auctions: _drawn(item, auctions, _ITEMS)),
        Column("description", Type.VARCHAR, description),
    ]


def channel_columns(seed: int) -> list[Column]:
    """Return the channel of bids and its address: half of the bids use four hot channels, the others ten thousand."""
    draws, many, hot = Draws(seed, "channel of a bid"), 4 * _CHANNELS, len(_HOT_CHANNELS)

    def chosen(bids: Integers) -> Integers:
        drawn = draws.below(bids, 2 * many)
        return np.where(drawn < many, drawn % hot, drawn // 4 - _CHANNELS + hot)

    return [
        Column("channel", Type.VARCHAR, lambda bids: _channels().gather(chosen(bids))),
        Column("url", Type.VARCHAR, lambda bids: _urls(seed).gather(chosen(bids))),
    ]


@cache
def _channels() -> pl.Series:
    return pl.Series([*_HOT_CHANNELS, *(f"channel-{number}" for number in range(_CHANNELS))])


@cache
def _urls(seed: int) -> pl.Series:
    """Return the address of each channel; nine of ten cold channels have their identifier in it."""
    numbers = np.arange(len(_HOT_CHANNELS) + _CHANNELS)
    words = Draws(seed, "path of an address").words(numbers).tolist()
    shown = Draws(seed, "address shows its channel").below(numbers, 10)
    shown[: len(_HOT_CHANNELS)] = 0
    identifiers = Draws(seed, "identifier of a channel").below(numbers, MOST)
    made = []
    for word, show, identifier in zip(words, shown.tolist(), identifiers.tolist(), strict=True):
        path = "".join(letters[(word >> 4 * place) % 26] for place in range(15))
        query = "query=1" + (f"&channel_id={identifier}" if show else "")
        made.append(f"https://auctions.example/{path[:5]}/{path[5:10]}/{path[10:]}/item.htm?{query}")
    return pl.Series(made)


@cache
def _hosts() -> pl.Series:
    return pl.Series([f"{''.join(name)}.example" for name in product(letters, repeat=3)])


@cache
def _numerals() -> pl.Series:
    return pl.Series([f"{number:04}" for number in range(10_000)])


def _drawn(draws: Draws, numbers: Integers, table: pl.Series) -> pl.Series:
    return table.gather(draws.below(numbers, table.len()))


def _joined(columns: Iterable[pl.Series], separator: str) -> pl.Series:
    named = [column.alias(str(at)) for at, column in enumerate(columns)]
    return pl.select(pl.concat_str(named, separator=separator)).to_series()
