"""w1 and w2 with Pathway: its tumbling windows and its interval join, on rows from a Python connector."""

from __future__ import annotations

import pathway as pw
import pyarrow.parquet as pq
from common import COLUMNS, WINDOW, Task, main


class Bid(pw.Schema):
    auction: int
    price: int
    ts: int


class Auction(pw.Schema):
    auction: int
    category: int
    ts: int


SCHEMAS = {"bid": Bid, "auction": Auction}


class Files(pw.io.python.ConnectorSubject):
    def __init__(self, stream: str, files: list[str]) -> None:
        super().__init__()
        self._stream, self._files = stream, files

    def run(self) -> None:
        for file in self._files:
            table = pq.read_table(file, columns=list(COLUMNS[self._stream]))
            table = table.set_column(0, "auction", table[0])  # Pathway has no column called id
            table = table.set_column(2, "ts", table["ts"].cast("int64"))
            for row in table.to_pylist():
                self.next(**row)
            self.commit()


def perform(task: Task) -> dict[str, int]:
    tables = {
        name: pw.io.python.read(Files(name, files), schema=SCHEMAS[name]) for name, files in task["files"].items()
    }
    if task["workload"] == "w1":
        bid = tables["bid"]
        made = bid.windowby(bid.ts, window=pw.temporal.tumbling(duration=WINDOW), instance=bid.auction).reduce(
            count=pw.reducers.count(), max=pw.reducers.max(pw.this.price), sum=pw.reducers.sum(pw.this.price)
        )
        names = ("count", "max", "sum")
    else:
        auction, bid = tables["auction"], tables["bid"]
        joined = auction.interval_join(
            bid, auction.ts, bid.ts, pw.temporal.interval(0, WINDOW), auction.auction == bid.auction
        )
        made = joined.select(price=bid.price, category=auction.category)
        names = ("price", "category")
    totals = dict.fromkeys(("rows", *names), 0)

    def on_change(key: object, row: dict[str, int], time: int, is_addition: bool) -> None:
        sign = 1 if is_addition else -1
        totals["rows"] += sign
        for name in names:
            totals[name] += sign * row[name]

    pw.io.subscribe(made, on_change=on_change)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return totals


if __name__ == "__main__":
    main(perform)
