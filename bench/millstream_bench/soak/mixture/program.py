"""The program that the mixture disturbs: queries over an auction site in real time, started again and again.

python -m millstream_bench.soak.mixture.program FOLDER EVENTS RATE SPEED MASTER

| in the folder | |
|---|---|
| `checkpoint` | its checkpoint |
| `commands/*.sql` | statements that it runs, and removes once they have taken effect |
| `sink-fails`, `sink-waits` | while the first exists, its sink raises; while the second does, every write waits |
| `alive` | the last batch that has been delivered since the start |
| `output/QUERY` | the rows of a query |

`MASTER` is a master of Spark, or `none`: it runs in its own process then. It ends with status 0 when all streams have
ended.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

import millstream as ms
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.atomic_file import write_whole
from millstream.control.observe.log_file import logging_to
from millstream.control.spark.session import calm
from millstream.control.stopping import Stop, Stopped, end_jvm, stopping
from millstream.errors import MillstreamError
from millstream.sinks import SINKS

STREAMS = """
CREATE STREAM IF NOT EXISTS auctions (id BIGINT, seller BIGINT, ts TIMESTAMP)
  ORDER BY ts PRIMARY KEY (id) ASCENDING (id)
  WITH (connector = 'nexmark', stream = 'auction', {site});
CREATE STREAM IF NOT EXISTS bids (auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP)
  ORDER BY ts PUNCTUATED ON (auction #) PUNCTUATED ON (ts +)
  WITH (connector = 'nexmark', stream = 'bid', {site})
"""
QUERIES = {
    "joined": "SELECT b.auction, a.seller, b.bidder, b.price, b.ts FROM bids b JOIN auctions a ON b.auction = a.id",
    "activity": "SELECT window_end, COUNT(*) AS bids, MAX(price) AS top FROM bids [RANGE 2 SECONDS SLIDE 1 SECOND]",
    "closed": "SELECT auction, COUNT(*) AS bids, SUM(price) AS total FROM bids GROUP BY auction",
}
"""The queries whose rows must be those of an undisturbed run."""
FLAKY = ("joined", "closed")
"""Those among them whose sink fails and waits."""
EXTRA = {
    "large": "SELECT auction, bidder, price, ts FROM bids WHERE price > 50000000",
    "sellers": "SELECT id, seller, ts FROM auctions",
    "tops": "SELECT auction, MAX(price) AS top FROM bids GROUP BY auction",
}
"""Queries that come and go."""
MEMORYLESS = ("large", "sellers")
"""Those among them whose rows do not depend on when they started."""
FAILS, WAITS, ALIVE = "sink-fails", "sink-waits", "alive"
WAIT_SECONDS = 0.3


class FlakySink:
    """Writes each batch to a file of its number, unless it is told to fail."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._folder, self._flags = Path(options["path"]), Path(options["flags"])

    def open(self, query: str, schema: Schema) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        if (self._flags / WAITS).exists():
            time.sleep(WAIT_SECONDS)
        if (self._flags / FAILS).exists():
            raise OSError("the sink fails, as it was told to")
        if rows.height:
            draft = self._folder / f".{batch}.tmp"
            rows.write_parquet(draft)
            draft.rename(self._folder / f"{batch:08}.parquet")

    def close(self) -> None:
        """Nothing is open between two batches."""


def statement(name: str, select: str, folder: Path, start: str = "now") -> str:
    """The statement that starts a query."""
    path = f"path = '{folder / 'output' / name}'"
    into = f"flaky WITH ({path}, flags = '{folder}')" if name in FLAKY else f"parquet WITH ({path})"
    return f"CREATE QUERY IF NOT EXISTS {name} WITH (start = '{start}') AS {select} INTO {into}"


def run(folder: Path, site: str, master: str, stop: Stop) -> None:
    """Run until the streams end. `site`: options of the generator."""
    SINKS.register("flaky", FlakySink)
    local, checkpoint = master == "none", folder / "checkpoint" / "mill"
    if local:
        mill = ms.connect(local=True, checkpoint=checkpoint, shards=2, resume=False)
    else:
        mill = ms.connect(master=master, log=folder / "log.txt", checkpoint=checkpoint, shards=2, resume=False)
        calm()
        stop.install()
    try:
        with mill.together():
            mill.sql(STREAMS.format(site=site))
            for name, select in QUERIES.items():
                mill.sql(statement(name, select, folder))
        while not mill.await_end(0.2):
            batch = max((query.progress().batch for query in mill.queries), default=-1)
            if batch >= 0:
                write_whole(folder / ALIVE, str(batch).encode())
            _obey(mill, folder / "commands")
        _obey(mill, folder / "commands")
        mill.await_end()
    finally:
        stop.close(mill.close, aside=not local)


def _obey(mill: ms.Connection, commands: Path) -> None:
    """Run the statements in a folder, and remove them."""
    for command in sorted(commands.glob("*.sql")):
        mill.sql(command.read_text())
        command.unlink()


def main() -> None:
    folder, events, rate, speed, master = sys.argv[1:]
    site = f"events = {events}, rate = {rate}, speed = '{speed}'"
    try:
        with stopping() as stop, logging_to(Path(folder) / "log.txt"):
            run(Path(folder), site, master, stop)
    except Stopped as stopped:
        sys.exit(stopped.status)
    except MillstreamError as error:
        print(error, flush=True)
        sys.exit(1)
    finally:
        end_jvm()


if __name__ == "__main__":
    main()
