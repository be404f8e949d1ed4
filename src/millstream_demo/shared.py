"""Shared by the demos: a connection with a warm Spark job, first rows, a tick every second, a query added later."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millstream.control.spark.session import calm
from millstream_demo.narrator import Narrator

if TYPE_CHECKING:
    from polars import DataFrame

    from millstream import Connection, Query

CLOSING = 4.0
"""Seconds reserved for the end of a demo."""
SHORTEST = 15.0
"""Shortest duration of the streams of a demo, in seconds."""
LATEST = 30.0
"""Seconds to wait longer on a busy machine."""
WARM_UP = "CREATE STREAM warm_up (k BIGINT) PUNCTUATED ON (k #)"


@contextmanager
def connected(narrator: Narrator, title: str) -> Iterator[Connection]:
    """Print a title; yield a new connection whose Spark job has run its first batch, and close it at the end."""
    narrator.title(title)
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


def shown(narrator: Narrator, mill: Connection, text: str) -> Any:
    """Show statements and run them."""
    narrator.statement(text)
    return mill.sql(text)


def lasting(narrator: Narrator) -> float:
    """Seconds that the streams of a demo should last from now on."""
    return narrator.left(SHORTEST + CLOSING) - CLOSING


def first_rows(mill: Connection, query: Query) -> DataFrame:
    """Wait for the first rows of a query."""
    begun = time.monotonic()
    while not (rows := query.take()).height and time.monotonic() - begun < LATEST:
        mill.check()
        time.sleep(0.05)
    return rows


def ticks(mill: Connection, limit: float) -> Iterator[float]:
    """Yield the elapsed seconds once a second, and a last time when the streams have ended or at the limit."""
    begun = time.monotonic()
    due, over = begun + 1.0, False
    while not over:
        mill.check()
        now = time.monotonic()
        over = mill.ended() or now - begun >= limit
        if over or now >= due:
            yield now - begun
            due = max(due + 1.0, time.monotonic())
        else:
            time.sleep(0.05)


class Added:
    """A query that joins the running job half-way: it prints its first rows and counts all."""

    def __init__(self, narrator: Narrator, mill: Connection, name: str, text: str, intro: str) -> None:
        self._narrator, self._mill = narrator, mill
        self._name, self._text, self._intro = name, text, intro
        self._query: Query | None = None
        self._begun = 0.0
        self.rows = 0

    def poll(self, *, due: bool) -> bool:
        """Start the query when it is due, later take its rows. Return True if the first rows were printed."""
        if self._query is None:
            if due:
                self._narrator.say(f"\n{self._intro}")
                query = shown(self._narrator, self._mill, self._text)
                self._begun = time.monotonic()
                self._query = query.start(name=self._name)
            return False
        rows = self._query.take()
        first = rows.height > 0 and self.rows == 0
        self.rows += rows.height
        if first:
            self._narrator.say(f"\nIts first rows, {time.monotonic() - self._begun:.1f} s after it was added:")
            self._narrator.table(rows.columns, rows.head(3).rows())
            self._narrator.say()
        return first
