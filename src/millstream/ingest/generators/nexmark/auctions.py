"""The auctions: when they open and close, and the auction of each bid; arithmetic on event numbers.

Of fifty events the first is a person, the next three are auctions, the others are bids. Auction a opens with its event
and closes a number of events later, before the event `closes(a)`. That number is drawn for each auction, uniformly
around a mean. It deviates by at most `MOST_SPREAD`, so that few auctions can close within a range of events, and they
are known without a search.

A bid is on an open auction: the hot one, which is the newest with a round number, or any one. Any one is drawn among
the auctions that may be open, and drawn again if it has closed; the last draw is among the newest auctions, which are
certainly open.
"""

from __future__ import annotations

import numpy as np

from millstream.algebra.arrays import Integers
from millstream.ingest.generators.draws import Draws

ROUND = 50
"""Events in a round: one person, three auctions, forty-six bids."""
FIRST_AUCTION = 1
AUCTIONS = 3
MOST_SPREAD = 25_000
SHORTEST_MEAN = 2 * ROUND
"""Long enough that the auctions of a round are open until it ends."""
HOT_UNIT = 100
"""One in this many auctions becomes hot."""
TRIES = 3


def opens(auctions: Integers) -> Integers:
    """Return the event that opens each auction."""
    rounds = auctions // AUCTIONS
    return auctions + (rounds * (ROUND - AUCTIONS) + FIRST_AUCTION)


def opened_before(event: int) -> int:
    """Return the number of auctions that open before an event."""
    return AUCTIONS * (event // ROUND) + min(max(event % ROUND - FIRST_AUCTION, 0), AUCTIONS)


class Auctions:
    """The auctions, numbered from 0. `mean` is the mean number of events that one is open. Of `hot` bids all but one go
    to the hot auction."""

    def __init__(self, seed: int, mean: int, hot: int) -> None:
        spread = min(mean // 2, MOST_SPREAD)
        self._shortest, self._longest = mean - spread, mean + spread
        self._hot = hot
        self._lives = Draws(seed, "life of an auction")
        self._is_hot = Draws(seed, "bid on the hot auction")
        self._choices = [Draws(seed, f"auction of a bid {attempt}") for attempt in range(TRIES + 1)]
        rounds_open = (self._shortest - ROUND + 1) // ROUND + 1
        self._surely_open = AUCTIONS * rounds_open
        self._maybe_open = AUCTIONS * (self._longest // ROUND + 1)
        self._unit = min(HOT_UNIT, self._surely_open)

    def closes(self, auctions: Integers) -> Integers:
        """Return the event before which each auction closes."""
        return opens(auctions) + self._shortest + self._lives.below(auctions, self._longest - self._shortest + 1)

    def closing(self, first: int, last: int, *, final: bool) -> tuple[Integers, Integers]:
        """Return the auctions that close before one of the events `first … last - 1`, and that event, in order.
        `final`: the auctions that are still open close too, before the event `last`."""
        lowest = opened_before(max(first - self._longest, 0))
        highest = opened_before(last if final else max(last - self._shortest, 0))
        auctions = np.arange(lowest, max(lowest, highest), dtype=np.int64)
        closes = self.closes(auctions)
        if final:
            np.minimum(closes, last, out=closes)
        here = (closes >= first) & (closes < last + final)
        auctions, closes = auctions[here], closes[here]
        order = np.argsort(closes, kind="stable")
        return auctions[order], closes[order]

    def chosen(self, bids: Integers) -> Integers:
        """Return the auction of each bid; bids are given by their events."""
        newest = bids // ROUND * AUCTIONS + (AUCTIONS - 1)
        chosen = newest - newest % self._unit
        open_ = np.flatnonzero(self._is_hot.below(bids, self._hot) == 0)
        events, newest = bids[open_], newest[open_]
        for draws in self._choices[:-1]:
            found = newest - draws.below(events, np.minimum(newest + 1, self._maybe_open))
            chosen[open_] = found
            again = np.flatnonzero(self.closes(found) <= events)
            open_, events, newest = open_[again], events[again], newest[again]
        chosen[open_] = newest - self._choices[-1].below(events, np.minimum(newest + 1, self._surely_open))
        return chosen
