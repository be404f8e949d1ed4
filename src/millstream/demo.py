"""`millstream demo`: open auctions joined with their bids, in this process, on generated events.

It shows the two things a newcomer should see: results flow, and the join's state goes as auctions close. Half-way a
second query is added to the running one.
"""

from __future__ import annotations

from rich.console import Console

from millstream.bench.events import generate
from millstream.control.mill import LocalMill

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
    for number, (bids, auctions) in enumerate(data.batches(size)):
        mill.insert("auctions", auctions)
        mill.insert("bids", data.closing(bids, number * size))
        mill.punctuate("bids", f"[ts < {bids['ts'][-1]}]")
        mill.batch()
        joined = mill.take_rows("open_auctions").height
        held = mill.state_rows("open_auctions")
        line = f"batch {number + 1:2d}   {auctions.height:,} auctions, {bids.height:,} bids"
        console.print(f"{line}   {joined:6,} joined   state {held:,} tuples", markup=False)
        if number == batches // 2:
            console.print(f"\nadded while it runs: CREATE QUERY per_window AS {COUNT}\n", markup=False, style="cyan")
            mill.add_query("per_window", COUNT)
        elif number > batches // 2:
            for end, count, top in mill.take_rows("per_window").rows():
                console.print(f"           per_window: {end}  {count:,} bids  highest {top:,.0f}", markup=False)
    console.print("\nHow a query runs: docs/life-of-a-query.md", markup=False)
