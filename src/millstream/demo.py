"""`millstream demo`: open auctions joined with their bids, in this process, on generated events.

It shows the two things a newcomer should see: results flow, and the join's state goes as auctions close. Half-way a
second query is added to the running one.
"""

from __future__ import annotations

import polars as pl
from rich.console import Console

from millstream.algebra.punctuation import Punctuations
from millstream.bench.events import generate
from millstream.control.mill import LocalMill
from millstream.ingest.source import PunctuatedRows

STATEMENTS = """
CREATE STREAM auctions (id BIGINT, seller BIGINT, category BIGINT, ts TIMESTAMP) PRIMARY KEY (id);
CREATE STREAM bids (auction BIGINT, bidder BIGINT, price DOUBLE, ts TIMESTAMP)
    ORDER BY ts PUNCTUATED ON (auction #) PUNCTUATED ON (ts +);
"""
JOIN = "SELECT a.category, b.auction, b.price FROM bids b JOIN auctions a ON b.auction = a.id"
COUNT = "SELECT window_end, COUNT(*) AS bids, MAX(price) AS top FROM bids [RANGE 10 SECONDS]"


def run(console: Console, events: int = 500_000, batches: int = 20) -> None:
    data = generate(events)
    mill = LocalMill()
    console.print(STATEMENTS.strip(), markup=False, style="cyan")
    mill.execute(STATEMENTS)
    console.print(f"CREATE QUERY open_auctions AS {JOIN}\n", markup=False, style="cyan")
    mill.add_query("open_auctions", JOIN)
    console.print("No window bounds this join. An auction's close, [auction = id] on bids, purges it.\n", markup=False)
    size = data.bids.height // batches
    for number in range(batches):
        bids = data.bids.slice(number * size, size)
        last = bids["ts"][-1]
        mill.insert("auctions", data.auctions.filter(pl.col("ts").is_between(bids["ts"][0], last, closed="right")))
        here = data.closings.filter(pl.col("position").is_between(number * size, (number + 1) * size, closed="right"))
        closed = Punctuations.from_column("auction", "=", here["auction"])
        mill.insert("bids", PunctuatedRows(bids, closed, (here["position"] - number * size).to_numpy()))
        mill.punctuate("bids", f"[ts < {last}]")
        mill.batch()
        joined = mill.take_rows("open_auctions").height
        held = mill.state_rows("open_auctions")
        line = f"batch {number + 1:2d}   {bids.height:,} bids   {here.height:,} auctions closed"
        console.print(f"{line}   {joined:6,} joined   state {held:4,} tuples", markup=False)
        if number == batches // 2:
            console.print(f"\nadded while it runs: CREATE QUERY per_window AS {COUNT}\n", markup=False, style="cyan")
            mill.add_query("per_window", COUNT)
        elif number > batches // 2:
            for end, count, top in mill.take_rows("per_window").rows():
                console.print(f"           per_window: {end}  {count:,} bids  highest {top:,.0f}", markup=False)
    console.print("\nThe same operators run on Spark; see docs/life-of-a-query.md for how.", markup=False)
