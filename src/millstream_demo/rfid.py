"""Tags that pass a reader: readings without noise and without duplicates, and goods that leave in groups."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from millstream_demo.narrator import Narrator
from millstream_demo.shared import Added, connected, first_rows, lasting, shown, ticks

TAGS, REPEATS, SPEED = 50, 10, 10
"""Tags per second, readings of each, and seconds of event time per second."""

STREAMS = f"""
CREATE STREAM readings (tag_id BIGINT, noise BOOLEAN, ts TIMESTAMP) ORDER BY ts
  WITH (connector = 'rfid', stream = 'readings', start = '2010-02-15 08:00:00', speed = {SPEED},
        tags = {TAGS}, repeats = {REPEATS}, noise = 0.1);

CREATE STREAM cleaned AS
  SELECT tag_id, noise, ts
  FROM DENOISE(TABLE readings, DESCRIPTOR(tag_id), INTERVAL '1' SECOND, 5);

CREATE STREAM arrivals AS
  SELECT tag_id, ts FROM (
    SELECT tag_id, ts, COUNT(*) OVER (PARTITION BY tag_id RANGE 1 SECOND PRECEDING) AS n FROM cleaned)
  WHERE n = 1
"""
RAW = """
SELECT window_end, COUNT(*) AS readings, COUNT(*) FILTER (WHERE noise) AS wrong, COUNT(DISTINCT tag_id) AS tags
FROM readings [RANGE 10 SECONDS]
"""
CLEAN = RAW.replace("readings [", "cleaned [")
TAGS_SEEN = "SELECT window_end, COUNT(*) AS tags FROM arrivals [RANGE 10 SECONDS]"
ADDED = """
SELECT window_end, MEDIAN(n) AS median_readings, MIN(n) AS least, STDDEV(n) AS deviation
FROM (SELECT tag_id, COUNT(*) AS n FROM cleaned [RANGE 10 SECONDS] GROUP BY tag_id) [RANGE 10 SECONDS]
"""
COLUMNS = ("time", "readings", "wrong", "tags", "kept", "wrong kept", "tags kept", "arrivals", "in state")


def run(narrator: Narrator) -> None:
    with connected(narrator, f"RFID tags at a gate, {SPEED} times as fast, on Spark") as mill:
        shown(narrator, mill, STREAMS)
        narrator.say(
            f"{TAGS} tags a second pass a reader, which reads each {REPEATS} times. Every tenth reading is wrong."
        )
        narrator.say("A tag that is read five times in a second is there; the others are noise.")
        narrator.statement(f"{RAW.strip()};\n\n{TAGS_SEEN}")
        raw = mill.sql(RAW).start(name="raw")
        clean = mill.sql(CLEAN).start(name="clean")
        seen = mill.sql(TAGS_SEEN).start(name="tags_seen")
        seconds = lasting(narrator)
        board = Board()
        board.take("raw", first_rows(mill, raw).rows())
        narrator.columns(*COLUMNS)
        intro = "A second query, added to the running Spark job: how often a tag is read."
        added = Added(narrator, mill, "readings_per_tag", ADDED, intro)
        for second in ticks(mill, seconds):
            for name, query in (("raw", raw), ("clean", clean), ("seen", seen)):
                board.take(name, query.take().rows())
            for line in board.lines():
                narrator.line(*line, clean.progress().state_rows)
            if added.poll(due=second >= seconds / 2):
                narrator.columns(*COLUMNS)
        narrator.say(
            "\nOf the wrong readings nothing is left, and each tag arrives once. State is a second of readings."
        )
        narrator.say("\nNext, by millstream docs PAGE: operators/denoise for the operator, sources for the generator")


class Board:
    """What the three queries say of each ten seconds, put together once all have said it."""

    def __init__(self) -> None:
        self._rows: dict[datetime, dict[str, tuple[Any, ...]]] = {}

    def take(self, query: str, rows: list[tuple[Any, ...]]) -> None:
        for end, *values in rows:
            self._rows.setdefault(end, {})[query] = tuple(values)

    def lines(self) -> list[tuple[Any, ...]]:
        """Remove and return the complete lines, in the order of time."""
        complete = sorted(end for end, found in self._rows.items() if len(found) == 3)
        made = []
        for end in complete:
            found = self._rows.pop(end)
            made.append((f"{end:%H:%M:%S}", *found["raw"], *found["clean"], *found["seen"]))
        return made
