"""A morning on five freeways: mean speeds per segment and minute, and probe vehicles joined with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.demo.narrator import Narrator
from millstream.demo.stage import Added, connected, first_rows, lasting, ticks

if TYPE_CHECKING:
    from millstream import Query

SPEED = 120
"""Event time is so many times as fast as real time."""
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
    narrator.title(f"Freeways at the rush hour, {SPEED} times as fast, on Spark")
    with connected(narrator) as mill:
        narrator.statement(STREAMS)
        mill.sql(STREAMS)
        narrator.say(
            f"{FREEWAYS} freeways of {MILES} segments, 150 detectors that report every 20 s, 400 probe vehicles."
        )
        narrator.say("[ts < 07:01:00] among the readings says that a minute is complete: its means come out, once.")
        narrator.statement(f"{MEANS};\n\n{PROBES}")
        means = mill.sql(MEANS).start(name="means_per_minute")
        probes = mill.sql(PROBES).start(name="probes_per_minute")
        seconds = lasting(narrator)
        board = Board()
        board.take(first_rows(mill, means).rows())
        narrator.columns(*COLUMNS)
        added: Added | None = None
        for second in ticks(mill, seconds):
            board.take(means.take().rows())
            board.take_probes(probes.take().rows())
            _line(narrator, board, means)
            if added is None and second >= seconds / 2:
                narrator.say("\nA second query, added to the running Spark job: slow probes on slow segments.")
                narrator.statement(ADDED)
                added = Added(narrator, mill.sql(ADDED), "slow_probes")
            elif added is not None and added.take():
                narrator.columns(*COLUMNS)
        narrator.say("\nMean speed by freeway (down) and mile (across) at the end:\n")
        narrator.table(("freeway", *map(str, range(1, MILES + 1))), board.rows())
        held = means.progress()
        readings = sum(stream.accepted for stream in held.streams)
        narrator.say(
            f"\n{readings:,} readings came. Without punctuation no minute would be known to be complete, and its\n"
            f"groups would be held: {board.groups:,} by now, instead of {held.state_rows:,}."
        )
        narrator.say("\nNext: docs/sources.md#traffic for the generator, docs/language.md#windows for windows")


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
        """Rows of a minute's end, segment, mean and readings."""
        self.groups += len(rows)
        for end, segment, mean, _ in sorted(rows):
            self.minute = f"{end:%H:%M}"
            self._means[segment] = mean

    def take_probes(self, rows: list[tuple[Any, ...]]) -> None:
        """Rows of a minute's end and the mean of all probes in it."""
        if rows:
            self.probes = max(rows)[1]

    @property
    def mean(self) -> float:
        return sum(self._means.values()) / max(len(self._means), 1)

    @property
    def slowest(self) -> tuple[int, float] | None:
        return min(self._means.items(), key=lambda item: item[1]) if self._means else None

    def rows(self) -> list[list[int | str | None]]:
        """A row per freeway, its number and the means of its miles."""
        made: list[list[int | str | None]] = []
        for freeway in range(FREEWAYS):
            means = (self._means.get(freeway * MILES + mile + 1) for mile in range(MILES))
            made.append([freeway + 1, *(None if mean is None else round(mean) for mean in means)])
        return made
