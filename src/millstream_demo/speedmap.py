"""A speed map of I-205 at the evening rush: loop detectors, joined with probe vehicles. A zoom tells the query which
stations are out of sight, and the work for them ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.text import Text

from millstream import scratch
from millstream_demo.freeway import READINGS, probes
from millstream_demo.freeway.speed_map import GREEN, RED, SpeedMap, legend
from millstream_demo.narrator import Narrator
from millstream_demo.shared import connected, first_rows, lasting, shown, ticks

if TYPE_CHECKING:
    from millstream import Query

SPEED = 180
"""Seconds of event time per second."""
PLAIN = 12
"""Frames between two maps on a screen that cannot be redrawn."""
ZOOM = ("Glisan", "Stark", "Division", "Powell")
"""The places that stay in sight."""
STREAMS = """
CREATE STREAM readings (ts TIMESTAMP, detector BIGINT, station BIGINT, volume BIGINT, speed BIGINT)
  ORDER BY ts
  WITH (connector = 'parquet', path = '{readings}', once = 'true', speed = {speed});

CREATE STREAM probes (ts TIMESTAMP, probe BIGINT, station BIGINT, speed BIGINT)
  ORDER BY ts
  WITH (connector = 'parquet', path = '{probes}', once = 'true', speed = {speed});

CREATE STREAM sensed AS
  SELECT window_end, station, SUM(speed) AS total, COUNT(*) AS n
  FROM readings [RANGE 2 MINUTES] WHERE volume > 0 AND speed IS NOT NULL GROUP BY station;

CREATE STREAM probed AS
  SELECT window_end, station, SUM(speed) AS total, COUNT(*) AS n FROM probes [RANGE 2 MINUTES] GROUP BY station
"""
MAP = f"""
SELECT window_end, station, speed,
       CASE WHEN speed > {GREEN:.0f} THEN 'green' WHEN speed < {RED:.0f} THEN 'red' ELSE 'yellow' END AS colour
FROM (
  SELECT s.window_end AS window_end, s.station AS station,
         (s.total + COALESCE(p.total, 0)) / (1.0 * (s.n + COALESCE(p.n, 0))) AS speed
  FROM sensed [RANGE 2 MINUTES] s LEFT JOIN probed [RANGE 2 MINUTES] p
    ON s.station = p.station AND s.window_end = p.window_end)
"""


def run(narrator: Narrator) -> None:
    title = f"The speed map of I-205 in Portland, 2011-09-15 from 16:00, {SPEED} times as fast, on Spark"
    with scratch.temporary() as folder, connected(narrator, title) as mill:
        probes.write(folder / "probes.parquet")
        shown(narrator, mill, statements(folder))
        narrator.say("53 loop detectors of the archive report every 20 s, 60 generated probe vehicles every minute.")
        narrator.statement(MAP)
        query = mill.sql(MAP).start(name="speed_map")
        seconds = lasting(narrator)
        coloured = narrator.console.is_terminal
        board = SpeedMap(coloured=coloured)
        work = Work(query)
        board.take(first_rows(mill, query).rows())
        with narrator.live() as live:
            screen = Screen(narrator, board, live)
            for second in ticks(mill, seconds):
                frames = board.take(query.take().rows())
                work.note(second)
                if second >= seconds / 2 and work.told is None:
                    _zoom(query, board, work, screen, second)
                screen.draw(frames, work.text())
            screen.end(work.text())
        narrator.say()
        work.report(narrator)
        narrator.say("\nNext, by millstream docs PAGE: feedback for what can be said")


def statements(folder: Path, speed: float | str = SPEED) -> str:
    return STREAMS.format(readings=READINGS, probes=folder / "probes.parquet", speed=speed)


def hidden(board: SpeedMap) -> str:
    """The feedback for the stations that are out of sight."""
    out = sorted(station.number for station in board.visible if station.place not in ZOOM)
    board.hide(out)
    return f"~[station in {{{', '.join(map(str, out))}}}]"


def _zoom(query: Query, board: SpeedMap, work: Work, screen: Screen, second: float) -> None:
    feedback = hidden(board)
    query.feedback(feedback)
    work.told = second
    screen.say(f'zoom on {", ".join(ZOOM)}:  query.feedback("{feedback}")')


class Work:
    """The tuples that the operators of a query take, before and after the zoom."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._at: list[tuple[float, int]] = []
        """The number of tuples taken so far, by the second."""
        self.told: float | None = None

    def note(self, second: float) -> None:
        taken = sum(each.reading.tuples_in for each in self._query.progress().operators)
        self._at.append((second, taken))

    def _rate(self, start: float, end: float) -> float | None:
        inside = [(second, taken) for second, taken in self._at if start <= second <= end]
        if len(inside) < 2:
            return None
        (first, before), (last, after) = inside[0], inside[-1]
        return (after - before) / (last - first)

    def rates(self) -> tuple[float | None, float | None]:
        """Tuples that operators take per second before and after the zoom."""
        last = self._at[-1][0] if self._at else 0.0
        told = last if self.told is None else self.told
        return self._rate(1.0, told), None if self.told is None else self._rate(told + 2.0, last)

    def text(self) -> str:
        before, after = self.rates()
        if before is None:
            return ""
        saved = "" if after is None else f"   after the zoom {after:,.0f} ({1 - after / before:.0%} less)"
        return f"tuples that operators take per second: {before:,.0f}{saved}"

    def report(self, narrator: Narrator) -> None:
        """What each operator took, and what its guards dropped."""
        held: dict[str, list[int]] = {}
        for each in self._query.progress().operators:
            kind = each.name.partition("-")[0] if each.reading.kind != "sink" else "result"
            mine = held.setdefault(kind, [0, 0])
            mine[0] += each.reading.tuples_in if each.reading.kind != "source" else each.reading.tuples_out
            mine[1] += each.reading.disclaimed
        narrator.table(("operator", "tuples", "disclaimed"), [(name, *counts) for name, counts in held.items()])
        narrator.say(f"\n{self.text()}")


class Screen:
    """Draws the map: in place on a terminal, now and then as lines elsewhere."""

    def __init__(self, narrator: Narrator, board: SpeedMap, live: Live | None) -> None:
        self._narrator, self._board, self._live = narrator, board, live
        self._frames = 0
        self._note = ""

    def say(self, text: str) -> None:
        self._note = text
        if self._live is None:
            self._narrator.say(text)

    def draw(self, frames: int, status: str) -> None:
        shown_before = self._frames // PLAIN
        self._frames += frames
        if self._live is not None:
            self._live.update(self._picture(status), refresh=True)
        elif self._frames // PLAIN > shown_before:
            self._narrator.console.print(self._picture(status))

    def end(self, status: str) -> None:
        """Draw the last map, on a screen that cannot be redrawn."""
        if self._live is None and self._frames % PLAIN:
            self._narrator.console.print(self._picture(status))

    def _picture(self, status: str) -> Group:
        time = "" if self._board.now is None else f"{self._board.now:%H:%M}"
        notes = (Text(line) for line in (self._note, status) if line)
        title = Text(f"\nI-205 at {time}", style="bold")
        return Group(title, self._board, legend(coloured=self._live is not None), *notes)
