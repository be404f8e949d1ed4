"""A morning on five freeways: mean speeds per segment and minute, and probe vehicles joined with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream_demo.narrator import Narrator
from millstream_demo.shared import Added, connected, first_rows, lasting, shown, ticks

if TYPE_CHECKING:
    from millstream import Query

SPEED = 120
"""Seconds of event time per second."""
FREEWAYS, MILES = 5, 10
FREEWAY = "start = '2010-02-15 06:50:00', congestion = 0.8, probes = 400, faulty = 0.05"

STREAMS = f"""
CREATE STREAM sensors (segment BIGINT, speed BIGINT, ts TIMESTAMP)
  ORDER BY ts PUNCTUATED ON (ts +)
  WITH (connector = 'traffic', stream = 'sensors', speed = {SPEED},
        {FREEWAY});

CREATE STREAM probes (probe_id BIGINT, segment BIGINT, speed BIGINT, ts TIMESTAMP)
  ORDER BY ts PUNCTUATED ON (ts +)
  WITH (connector = 'traffic', stream = 'probes', speed = {SPEED},
        {FREEWAY});

CREATE STREAM means AS
  SELECT window_end, segment, AVG(speed) AS mean, COUNT(*) AS readings
  FROM sensors [RANGE 1 MINUTE] WHERE speed >= 0 GROUP BY segment
"""
COLUMNS = ("minute", "readings", "rows out", "in state", "mean mph", "probes mph", "slowest segment")
MEANS = "SELECT window_end, segment, mean, readings FROM means"
PROBES = "SELECT window_end, AVG(speed) AS mean FROM probes [RANGE 1 MINUTE]"
ADDED = """
SELECT p.ts, p.probe_id, p.segment, p.speed, m.mean
FROM probes [RANGE 1 MINUTE] p JOIN means [RANGE 1 MINUTE] m ON p.segment = m.segment
WHERE m.mean < 30 AND p.speed < m.mean
"""


def run(narrator: Narrator) -> None:
    with connected(narrator, f"Freeways at the rush hour, {SPEED} times as fast, on Spark") as mill:
        shown(narrator, mill, STREAMS)
        narrator.say(
            f"{FREEWAYS} freeways of {MILES} segments, 150 detectors that report every 20 s, 400 probe vehicles."
        )
        narrator.say("The punctuation [ts < 07:01:00] completes a minute: its means are emitted, once.")
        narrator.statement(f"{MEANS};\n\n{PROBES}")
        means = mill.sql(MEANS).start(name="means_per_minute")
        probes = mill.sql(PROBES).start(name="probes_per_minute")
        seconds = lasting(narrator)
        board = Board()
        board.take(first_rows(mill, means).rows())
        narrator.columns(*COLUMNS)
        intro = "A second query, added to the running Spark job: slow probes on slow segments."
        added = Added(narrator, mill, "slow_probes", ADDED, intro)
        for second in ticks(mill, seconds):
            board.take(means.take().rows())
            board.take_probes(probes.take().rows())
            _line(narrator, board, means)
            if added.poll(due=second >= seconds / 2):
                narrator.columns(*COLUMNS)
        narrator.say("\nMean speed by freeway (down) and mile (across) at the end:\n")
        narrator.table(("freeway", *map(str, range(1, MILES + 1))), board.rows())
        held = means.progress()
        readings = sum(stream.accepted for stream in held.streams)
        narrator.say(
            f"\n{readings:,} readings have arrived. Without punctuation no minute would be complete, and the query\n"
            f"would hold all groups: {board.groups:,} by now, instead of {held.state_rows:,}."
        )
        narrator.say("\nNext, by millstream docs PAGE: sources for the generator, language for windows")


def _line(narrator: Narrator, board: Board, means: Query) -> None:
    if board.slowest is None:
        return
    progress = means.progress()
    segment, speed = board.slowest
    freeway, mile = divmod(segment - 1, MILES)
    slowest = f"freeway {freeway + 1} mile {mile + 1}: {speed:.0f} mph"
    readings = sum(stream.accepted for stream in progress.streams)
    narrator.line(board.minute, readings, progress.rows_out, progress.state_rows, board.mean, board.probes, slowest)


class Board:
    """The last mean of every segment."""

    def __init__(self) -> None:
        self.minute = ""
        self.groups = 0
        self.probes: float | None = None
        """The last mean of all probes."""
        self._means: dict[int, float] = {}

    def take(self, rows: list[tuple[Any, ...]]) -> None:
        """Take rows of a minute's end, a segment, its mean and its number of readings."""
        self.groups += len(rows)
        for end, segment, mean, _ in sorted(rows):
            self.minute = f"{end:%H:%M}"
            self._means[segment] = mean

    def take_probes(self, rows: list[tuple[Any, ...]]) -> None:
        """Take rows of a minute's end and the mean of all probes in it."""
        if rows:
            self.probes = max(rows)[1]

    @property
    def mean(self) -> float:
        return sum(self._means.values()) / max(len(self._means), 1)

    @property
    def slowest(self) -> tuple[int, float] | None:
        return min(self._means.items(), key=lambda item: item[1]) if self._means else None

    def rows(self) -> list[list[int | str | None]]:
        """One row per freeway: its number and the means of its miles."""
        rows: list[list[int | str | None]] = []
        for freeway in range(FREEWAYS):
            means = (self._means.get(freeway * MILES + mile + 1) for mile in range(MILES))
            rows.append([freeway + 1, *(None if mean is None else round(mean) for mean in means)])
        return rows
