"""Auction events for measurements: persons, auctions and bids in the benchmark's proportions (1 : 3 : 46 in 50 events).

Half of the bids are for a hot auction, the others for one of the last hundred; some bids arrive before their auction.
An auction receives no bid once a hundred newer ones have opened; `closings` holds the bid after which that is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.ingest.source import PunctuatedRows

EVENTS_PER_SECOND = 10_000
IN_FLIGHT = 100
LEAD = 10


@dataclass(frozen=True, slots=True)
class AuctionEvents:
    auctions: pl.DataFrame
    bids: pl.DataFrame
    closings: pl.DataFrame
    """`auction`, and `position`: the number of bids before the promise that it receives no more."""

    def batches(self, size: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Both streams in batches of `size` bids, cut at the same times."""
        times = self.auctions["ts"].to_physical().to_numpy()
        ends = self.bids["ts"].to_physical().to_numpy()
        done = 0
        for start in range(0, self.bids.height, size):
            bids = self.bids.slice(start, size)
            upto = int(np.searchsorted(times, ends[start + bids.height - 1], side="right"))
            yield bids, self.auctions.slice(done, upto - done)
            done = upto

    def closing(self, bids: pl.DataFrame, before: int) -> PunctuatedRows:
        """A batch of bids with the closings that fall into it; `before` bids precede it."""
        here = self.closings.filter(pl.col("position").is_between(before, before + bids.height, closed="right"))
        closed = Punctuations.from_column("auction", "=", here["auction"])
        return PunctuatedRows(bids, closed, (here["position"] - before).to_numpy())


def generate(events: int, seed: int = 42) -> AuctionEvents:
    random = np.random.default_rng(seed)
    number = np.arange(events, dtype=np.int64)
    epoch, offset = number // 50, number % 50
    stamp = number * (1_000_000 // EVENTS_PER_SECOND)
    newest = np.where(offset < 1, epoch * 3 - 1, np.where(offset >= 4, epoch * 3 + 2, epoch * 3 + offset - 1))
    is_auction, is_bid = (offset >= 1) & (offset < 4), offset >= 4
    at = newest[is_bid]
    count = int(is_bid.sum())
    hot = at // IN_FLIGHT * IN_FLIGHT
    oldest = np.maximum(at - IN_FLIGHT, 0)
    cold = oldest + (random.random(count) * (at - oldest + 1 + LEAD)).astype(np.int64)
    auction = np.where(random.random(count) < 0.5, hot, cold)
    bids = pl.DataFrame(
        {
            "auction": auction,
            "bidder": random.integers(1_000, 2_000, count),
            "price": np.round(10.0 ** (random.random(count) * 6.0) * 100.0),
            "ts": stamp[is_bid],
        }
    ).with_columns(pl.col("ts").cast(pl.Datetime("us")))
    opened = newest[is_auction]
    auctions = pl.DataFrame(
        {
            "id": opened,
            "seller": random.integers(1_000, 2_000, len(opened)),
            "category": random.integers(10, 15, len(opened)),
            "ts": stamp[is_auction],
        }
    ).with_columns(pl.col("ts").cast(pl.Datetime("us")))
    closed = np.arange(0, max(0, int(at[-1]) - IN_FLIGHT), dtype=np.int64)
    position = np.searchsorted(at, closed + IN_FLIGHT + 1, side="left").astype(np.int64)
    return AuctionEvents(auctions, bids, pl.DataFrame({"auction": closed, "position": position}))
