"""Open auctions joined with their bids. No window bounds the join: it purges an auction when the auction closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream_demo.narrator import Cell, Narrator
from millstream_demo.shared import LATEST, Added, connected, first_rows, lasting, shown, ticks

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
ADDED_INTRO = """\
A second query, added to the running Spark job. It has a row for each auction that closes,
over the bids from now on:"""
COLUMNS = ("second", "rows in", "rows/s", "joined", "closed", "open auctions", "in state")


def streams(seconds: float) -> str:
    """The statements that create streams of `seconds` seconds."""
    events = round(seconds) * RATE
    site = f"rate = {RATE}, auction_duration = '5 seconds', events = {events},\n        {PACE}"
    return STREAMS.format(site=site)


def run(narrator: Narrator) -> None:
    with connected(narrator, "Open auctions joined with their bids, on Spark") as mill:
        seconds = lasting(narrator)
        shown(narrator, mill, streams(seconds))
        narrator.say("Two generated streams of an auction site, in real time. When auction 1000 closes, the")
        narrator.say("bids contain the punctuation [auction = 1000]: no later bid has auction = 1000.")
        joined = shown(narrator, mill, JOIN).start(name="joined")
        rows = first_rows(mill, joined)
        tally = Tally(joined, rows.height)
        narrator.say("The first rows:")
        narrator.table(rows.columns, rows.head(3).rows())
        narrator.say("\nNo window bounds this join. It holds the open auctions, however long it runs:\n")
        narrator.columns(*COLUMNS)
        added = Added(narrator, mill, "sold", ADDED, ADDED_INTRO)
        for second in ticks(mill, seconds + LATEST):
            narrator.line(*tally.read(second), *([added.rows] if added.rows else []))
            if added.poll(due=second >= seconds / 2):
                narrator.columns(*COLUMNS, "sold")
        _sum_up(narrator, tally)


def _sum_up(narrator: Narrator, tally: Tally) -> None:
    narrator.say()
    if tally.held == 0:
        narrator.say("The streams have ended, all auctions are closed, and the join holds nothing.")
    narrator.say(
        f"The join has processed {tally.rows:,} tuples. Without punctuation it would hold all of them now;\n"
        f"it held {tally.peak:,} at most."
    )
    narrator.say("\nNext, by millstream docs PAGE: language for the language, python for the API,")
    narrator.say("life-of-a-query for how it works.")
    narrator.say("More demos: millstream demo traffic, containment, rfid, speedmap, early")


class Tally:
    """The figures of the join, second by second."""

    def __init__(self, query: Query, joined: int) -> None:
        self._query, self._joined = query, joined
        self.held = self.peak = self._closed = 0
        self._seconds, self.rows = 0.0, sum(stream.accepted for stream in query.progress().streams)

    def read(self, second: float) -> list[Cell]:
        """Return the next line."""
        progress = self._settled()
        accepted = {stream.name: stream.accepted for stream in progress.streams}
        rows = sum(accepted.values())
        rate = (rows - self.rows) / max(second - self._seconds, 1e-3)
        self._seconds, self.rows, self.held = second, rows, progress.state_rows
        self.peak = max(self.peak, self.held)
        open_auctions = accepted["auctions"] - self._closed
        return [round(second), rows, round(rate), self._joined, self._closed, open_auctions, self.held]

    def _settled(self) -> Progress:
        """Take all results; return the progress at a moment when no result was left."""
        while True:
            before = self._query.progress()
            self._joined += self._query.take().height
            self._closed += sum(closes(text) for text in self._query.punctuations())
            after = self._query.progress()
            if (after.batch, after.operators) == (before.batch, before.operators):
                return after


def closes(punctuation: str) -> bool:
    """Return whether a punctuation closes one auction, not the whole stream.

    >>> closes("[1000, *, *, *]"), closes("[*, *, *, *]")
    (True, False)
    """
    return not punctuation.startswith("[*,")
