"""Open auctions joined with their bids. No window bounds the join: an auction's state goes when the auction closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.demo.narrator import Cell, Narrator
from millstream.demo.stage import LATEST, Added, connected, first_rows, lasting, ticks

if TYPE_CHECKING:
    from millstream import Query
    from millstream.control.observe.progress import Progress

RATE = 10_000
"""Events a second."""
PACE = "speed = 1, max_rows_per_trigger = 20000"
STREAMS = """
CREATE STREAM auctions (id BIGINT, item_name VARCHAR, seller BIGINT, ts TIMESTAMP)
  ORDER BY ts PRIMARY KEY (id)
  WITH (connector = 'nexmark', stream = 'auction',
        {site});

CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP)
  ORDER BY ts PUNCTUATED ON (auction #)
  WITH (connector = 'nexmark', stream = 'bid',
        {site})
"""
JOIN = """
SELECT b.auction, a.item_name, a.seller, b.price
FROM bids b JOIN auctions a ON b.auction = a.id
"""
ADDED = """
SELECT auction, COUNT(*) AS bids, MAX(price) AS highest
FROM bids GROUP BY auction
"""


def streams(seconds: float) -> str:
    """The statements that create the streams, which last so many seconds."""
    events = round(seconds) * RATE
    site = f"rate = {RATE}, auction_duration = '5 seconds', events = {events},\n        {PACE}"
    return STREAMS.format(site=site)


def run(narrator: Narrator) -> None:
    narrator.title("Open auctions joined with their bids, on Spark")
    with connected(narrator) as mill:
        seconds = lasting(narrator)
        narrator.statement(streams(seconds))
        mill.sql(streams(seconds))
        narrator.say("Two generated streams of an auction site, in real time. When auction 1000 closes,")
        narrator.say("[auction = 1000] stands among the bids: no later bid has auction = 1000.")
        narrator.statement(JOIN)
        joined = mill.sql(JOIN).start(name="joined")
        rows = first_rows(mill, joined)
        tally = Tally(joined, rows.height)
        narrator.say("The first rows:")
        narrator.table(rows.columns, rows.head(3).rows())
        narrator.say("\nNo window bounds this join. What it holds are the open auctions, however long it runs:\n")
        narrator.columns(*tally.names)
        for second in ticks(mill, seconds + LATEST):
            narrator.line(*tally.read(second))
            if tally.added is None and second >= seconds / 2:
                narrator.say("\nA second query, added to the running Spark job. When an auction closes it has a row,")
                narrator.say("over the bids from now on:")
                narrator.statement(ADDED)
                tally.added = Added(narrator, mill.sql(ADDED), "sold")
            elif tally.added is not None and tally.added.take():
                narrator.columns(*tally.names, "sold")
        _sum_up(narrator, tally)


def _sum_up(narrator: Narrator, tally: Tally) -> None:
    narrator.say()
    if tally.held == 0:
        narrator.say("The streams have ended, all auctions are closed, and nothing is held any more.")
    narrator.say(
        f"{tally.rows:,} tuples went through the join. Without punctuation it would hold all of them now;\n"
        f"it held {tally.peak:,} at most."
    )
    narrator.say("\nNext: README.md, docs/language.md for the language, docs/python.md for the API,")
    narrator.say("docs/life-of-a-query.md for how it works. More demos: millstream demo traffic, containment")


class Tally:
    """What there is to say about the join every second."""

    names = ("second", "rows in", "rows/s", "joined", "closed", "open auctions", "in state")

    def __init__(self, query: Query, joined: int) -> None:
        self._query, self._joined = query, joined
        self.added: Added | None = None
        self.open = self.held = self.peak = 0
        self._closed = 0
        self._seconds, self.rows = 0.0, sum(stream.accepted for stream in query.progress().streams)

    def read(self, second: float) -> list[Cell]:
        """The next line."""
        moment = self._moment()
        came = {stream.name: stream.accepted for stream in moment.streams}
        rows = sum(came.values())
        rate = (rows - self.rows) / max(second - self._seconds, 1e-3)
        self._seconds, self.rows = second, rows
        self.open, self.held = came["auctions"] - self._closed, moment.state_rows
        self.peak = max(self.peak, self.held)
        line: list[Cell] = [round(second), rows, round(rate), self._joined, self._closed, self.open]
        sold = [self.added.rows] if self.added is not None and self.added.rows else []
        return [*line, self.held, *sold]

    def _moment(self) -> Progress:
        """The progress at one moment, with all that was put out until then taken."""
        while True:
            before = self._query.progress()
            self._joined += self._query.take().height
            self._closed += sum(closes(text) for text in self._query.punctuations())
            after = self._query.progress()
            if (after.batch, after.operators) == (before.batch, before.operators):
                return after


def closes(punctuation: str) -> bool:
    """Whether a punctuation closes an auction, and not the whole stream.

    >>> closes("[1000, *, *, *]"), closes("[*, *, *, *]")
    (True, False)
    """
    return not punctuation.startswith("[*,")
