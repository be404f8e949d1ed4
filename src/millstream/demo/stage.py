"""What the demos have in common on Spark: a connection that is ready, first rows, and the passing of seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.control.spark.session import calm
from millstream.demo.narrator import Narrator

if TYPE_CHECKING:
    from polars import DataFrame

    from millstream import Connection, Query

CLOSING = 4.0
"""Seconds that the end of a demo takes."""
SHORTEST = 15.0
"""Seconds that its streams last at least."""
LATEST = 30.0
"""Seconds by which a busy machine may be late."""
WARM_UP = "CREATE STREAM warm_up (k BIGINT) PUNCTUATED ON (k #)"


@contextmanager
def connected(narrator: Narrator) -> Iterator[Connection]:
    """A connection of our own, closed at the end, whose Spark job has been through its first batch."""
    with narrator.waiting("starting Spark"):
        import millstream as ms

        connection = ms.connect()
    calm()
    with connection:
        with narrator.waiting("starting its Python workers"):
            _warm_up(connection)
        yield connection


def _warm_up(mill: Connection) -> None:
    """Run a query over a few rows: Spark's first batch takes much longer than all later ones."""
    mill.sql(WARM_UP)
    query = mill.sql("SELECT k, COUNT(*) AS n FROM warm_up GROUP BY k").start()
    mill.insert("warm_up", [(k,) for k in range(16)])
    mill.punctuate("warm_up", "[*]")
    query.take()
    query.stop()
    mill.sql("DROP STREAM warm_up")


def lasting(narrator: Narrator) -> float:
    """How many seconds the streams of a demo should last from now on."""
    return narrator.left(SHORTEST + CLOSING) - CLOSING


def first_rows(mill: Connection, query: Query) -> DataFrame:
    """Wait for the first rows of a query."""
    begun = time.monotonic()
    while not (rows := query.take()).height and time.monotonic() - begun < LATEST:
        mill.check()
        time.sleep(0.05)
    return rows


def ticks(mill: Connection, limit: float) -> Iterator[float]:
    """Once a second, the seconds so far; a last time when the streams have ended or the limit is reached."""
    begun = due = time.monotonic()
    while True:
        due = max(due + 1.0, time.monotonic())
        while True:
            mill.check()
            now = time.monotonic()
            over = mill.ended() or now - begun >= limit
            if over or now >= due:
                break
            time.sleep(0.05)
        yield now - begun
        if over:
            return


class Added:
    """A query that was added to those that run: its first rows are shown, then they are counted."""

    def __init__(self, narrator: Narrator, query: Query, name: str) -> None:
        self._narrator, self._begun = narrator, time.monotonic()
        self.query = query.start(name=name)
        self.rows = 0

    def take(self) -> bool:
        """Take what has come. True if these were the first rows, and they have been shown."""
        rows = self.query.take()
        first = rows.height > 0 and self.rows == 0
        self.rows += rows.height
        if first:
            self._narrator.say(f"\nIts first rows, {time.monotonic() - self._begun:.1f} s after it was added:")
            self._narrator.table(rows.columns, rows.head(3).rows())
            self._narrator.say()
        return first
