"""The values of the auction benchmark that mean nothing else: prices, names, cards, items, channels, addresses.

Texts are taken from tables that are made once, so that a column of them costs little more than one of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from string import ascii_lowercase as letters

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
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
    """Cents between 100 and 100 million; each power of ten is alike likely."""
    words = draws.words(numbers)
    step = (words >> np.uint64(52)).view(np.int64)
    part = ((words >> np.uint64(20)) & np.uint64(0xFFFFFFFF)).view(np.int64)
    low: Integers = _PRICES[step]
    return low + ((_PRICES[step + 1] - low) * part >> 32)


class People:
    """What is told of persons, by number."""

    def __init__(self, seed: int) -> None:
        self._name, self._host, self._city, self._state = (
            Draws(seed, f"{what} of a person") for what in ("name", "host", "city", "state")
        )
        self._digits = [Draws(seed, f"card of a person {part}") for part in range(4)]

    def name(self, persons: Integers) -> pl.Series:
        return _drawn(self._name, persons, _NAMES)

    def email_address(self, persons: Integers) -> pl.Series:
        return _joined([_drawn(self._name, persons, _MAILBOXES), _drawn(self._host, persons, _hosts())], "@")

    def credit_card(self, persons: Integers) -> pl.Series:
        return _joined([_drawn(draws, persons, _numerals()) for draws in self._digits], " ")

    def city(self, persons: Integers) -> pl.Series:
        return _drawn(self._city, persons, _CITIES)

    def state(self, persons: Integers) -> pl.Series:
        return _drawn(self._state, persons, _STATES)


class Items:
    """What is told of the goods for auction, by number."""

    def __init__(self, seed: int) -> None:
        self._item, self._condition = Draws(seed, "item"), Draws(seed, "condition of an item")

    def name(self, auctions: Integers) -> pl.Series:
        return _drawn(self._item, auctions, _ITEMS)

    def description(self, auctions: Integers) -> pl.Series:
        return _joined([self.name(auctions), _drawn(self._condition, auctions, _CONDITIONS)], ", ")


class Channels:
    """Where bids come from: half of them from four hot channels, the others from ten thousand; each has its address."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._draws = Draws(seed, "channel of a bid")

    def channel(self, bids: Integers) -> pl.Series:
        return _channels().gather(self._chosen(bids))

    def url(self, bids: Integers) -> pl.Series:
        return _urls(self._seed).gather(self._chosen(bids))

    def _chosen(self, bids: Integers) -> Integers:
        many, hot = 4 * _CHANNELS, len(_HOT_CHANNELS)
        drawn = self._draws.below(bids, 2 * many)
        return np.where(drawn < many, drawn % hot, drawn // 4 - _CHANNELS + hot)


@cache
def _channels() -> pl.Series:
    return pl.Series([*_HOT_CHANNELS, *(f"channel-{number}" for number in range(_CHANNELS))])


@cache
def _urls(seed: int) -> pl.Series:
    """The address of each channel; nine of ten cold ones show an identifier of the channel in it."""
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
