"""The two workloads, and their answers: a few totals over all rows of the result.

| | computes | reads |
|---|---|---|
| w1 | count, highest and sum of the prices per auction and tumbling window of 10 s | all bids |
| w2 | bids joined with their auctions, the bid at most 10 s after the auction | all bids and auctions |
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import OptionError, did_you_mean


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    title: str
    streams: tuple[str, ...]
    answers: tuple[str, ...]
    """Totals over the result: number of rows, sums of columns."""
    duckdb: str
    """The answers in SQL over tables named as the streams."""


W1 = Workload(
    "w1",
    "tumbling 10 s count, max, sum per auction",
    ("bid",),
    ("rows", "count", "max", "sum"),
    """SELECT count(*), sum(c), sum(m), sum(s) FROM (
         SELECT time_bucket(INTERVAL 10 SECOND, ts) AS w, auction, count(*) AS c, max(price) AS m, sum(price) AS s
         FROM bid GROUP BY w, auction)""",
)
W2 = Workload(
    "w2",
    "bid ⋈ auction within 10 s",
    ("bid", "auction"),
    ("rows", "price", "category"),
    """SELECT count(*), sum(b.price), sum(a.category) FROM bid b JOIN auction a
       ON b.auction = a.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECOND""",
)
WORKLOADS = {workload.name: workload for workload in (W1, W2)}


def named(name: str) -> Workload:
    """
    >>> named("w2").answers
    ('rows', 'price', 'category')
    """
    if name not in WORKLOADS:
        raise OptionError("M6002", f"unknown workload '{name}'", hint=did_you_mean(name, WORKLOADS))
    return WORKLOADS[name]
