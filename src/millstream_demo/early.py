"""An hour of I-205 at the evening rush: each window is answered before its end, and the final answer follows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Group
from rich.live import Live
from rich.text import Text

from millstream_demo.freeway import READINGS
from millstream_demo.narrator import Narrator, text_of
from millstream_demo.shared import connected, lasting, shown

if TYPE_CHECKING:
    from millstream import Connection, Query

BEGIN, END = datetime(2011, 9, 15, 16, 20), datetime(2011, 9, 15, 17, 30)
"""The readings that are replayed: an hour of windows, and what the first of them needs."""
FIRST = datetime(2011, 9, 15, 16, 35)
"""The end of the first window that is shown."""
CHANGE = datetime(2011, 9, 15, 16, 55)
"""When later windows begin to be asked for sooner."""
PERIOD = timedelta(seconds=20)
"""Time between two readings of a detector."""
STREAM = """
CREATE STREAM readings (ts TIMESTAMP, detector BIGINT, station BIGINT, volume BIGINT, speed BIGINT)
  ORDER BY ts
"""
QUERY = """
SELECT window_end, SUM(volume) AS vehicles, AVG(speed) AS speed, finality
FROM readings [RANGE 10 MINUTES SLIDE 5 MINUTES]
WHERE volume > 0
EMIT EARLY AT 80 %
"""
SOONER = "ALTER QUERY freeway EMIT EARLY AT 30 %"
COLUMNS = ("window", "answered", "vehicles", "final", "accuracy", "mph", "final", "s ahead")
WIDTHS = (11, 8, 8, 8, 8, 6, 6, 8)


def readings() -> pl.DataFrame:
    return pl.read_parquet(READINGS).filter(pl.col("ts").is_between(BEGIN, END))


def run(narrator: Narrator) -> None:
    with connected(narrator, "Early answers: I-205 in Portland, 2011-09-15 from 16:30 to 17:30, on Spark") as mill:
        shown(narrator, mill, STREAM)
        narrator.say("53 loop detectors report every 20 s. The vehicles and the mean speed of ten minutes, every five:")
        narrator.statement(QUERY)
        query = mill.sql(QUERY).start(name="freeway")
        board, changed = Board(), False
        replay = Replay(mill, lasting(narrator))
        narrator.say(f"{replay.speed:.0f} times as fast. Early answers stand beside the final ones:\n")
        with narrator.live() as live:
            screen = Screen(narrator, board, live)
            for now in replay:
                board.take(query.take().rows(), now)
                if now >= CHANGE and not changed:
                    changed = True
                    mill.sql(SOONER)
                    screen.say(f"{SOONER};")
                screen.draw()
            _finish(query, board, replay)
            screen.draw()
        narrator.say()
        for line in board.summary():
            narrator.say(line)
        narrator.say("\nNext, by millstream docs PAGE: early for who may ask, and when")


def _finish(query: Query, board: Board, replay: Replay) -> None:
    """Wait for the final answer of the last window."""
    until = time.monotonic() + 30
    while board.open() and time.monotonic() < until:
        board.take(query.take().rows(), replay.now())
        time.sleep(0.05)


class Replay:
    """Inserts the readings when they are due, and yields the time that they have reached."""

    def __init__(self, mill: Connection, seconds: float) -> None:
        self._mill = mill
        self.speed = (END - BEGIN).total_seconds() / seconds
        self._pages = readings().partition_by("ts", maintain_order=True)
        self._begun = time.monotonic()

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=(time.monotonic() - self._begun) * self.speed)

    def __iter__(self) -> Iterator[datetime]:
        self._begun = time.monotonic()
        while self._pages:
            self._mill.check()
            now = self.now()
            due = sum(page["ts"][0] <= now for page in self._pages)
            if due:
                self._mill.insert("readings", pl.concat(self._pages[:due]))
                self._pages = self._pages[due:]
            yield now
            time.sleep(0.1)


@dataclass(slots=True)
class Answer:
    """The answers for one window. Times are those of the program's clock."""

    end: datetime
    asked: datetime | None = None
    early: tuple[int, float] | None = None
    early_at: float = 0.0
    final: tuple[int, float] | None = None
    final_at: float = 0.0

    @property
    def sooner(self) -> bool:
        """Whether it was asked for after the change."""
        return self.end > CHANGE

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the early number of vehicles, in percent."""
        if self.early is None or self.final is None:
            return None
        (early, _), (final, _) = self.early, self.final
        return 100 * (final - abs(final - early)) / final

    @property
    def ahead(self) -> float | None:
        """Seconds from the early answer to the final one."""
        return None if self.early is None or self.final is None else self.final_at - self.early_at

    def cells(self) -> tuple[str, ...]:
        begin = self.end - timedelta(minutes=10)
        asked = "" if self.asked is None else f"{self.asked:%H:%M:%S}"
        (vehicles, speed), (final, final_speed) = self.early or (None, None), self.final or (None, None)
        accuracy = "" if self.accuracy is None else f"{self.accuracy:.1f} %"
        numbers = [*map(_cell, (vehicles, final)), accuracy, *map(_cell, (speed, final_speed)), _cell(self.ahead)]
        return f"{begin:%H:%M}-{self.end:%H:%M}", asked, *numbers


def _cell(value: Any) -> str:
    return "" if value is None else text_of(value)


class Board:
    """Early and final answers by window."""

    def __init__(self) -> None:
        self._answers: dict[datetime, Answer] = {}

    def take(self, rows: list[tuple[Any, ...]], now: datetime) -> None:
        for end, vehicles, speed, finality in rows:
            if not FIRST <= end <= END:
                continue
            answer = self._answers.setdefault(end, Answer(end))
            if finality == "early":
                answer.asked, answer.early, answer.early_at = now, (vehicles, speed), time.monotonic()
            else:
                answer.final, answer.final_at = (vehicles, speed), time.monotonic()

    def answers(self) -> list[Answer]:
        return [self._answers[end] for end in sorted(self._answers)]

    def open(self) -> bool:
        """Return whether the last window has no final answer yet."""
        last = self._answers.get(END)
        return last is None or last.final is None

    def summary(self) -> list[str]:
        """The mean accuracy and gain of each of the two schedules."""
        lines = []
        for sooner, name in ((False, "at 80 % of the last slide"), (True, "at 30 % of the last slide")):
            pairs = [each for each in self.answers() if each.sooner == sooner and each.accuracy is not None]
            if pairs:
                accuracy = sum(each.accuracy or 0 for each in pairs) / len(pairs)
                ahead = sum(each.ahead or 0 for each in pairs) / len(pairs)
                lines.append(f"asked {name}: {accuracy:.1f} % of the vehicles, {ahead:.1f} s ahead of the final answer")
        return lines


class Screen:
    """Shows the board: in place on a terminal, elsewhere a line for each window once it is final."""

    def __init__(self, narrator: Narrator, board: Board, live: Live | None) -> None:
        self._narrator, self._board, self._live = narrator, board, live
        self._notes: list[tuple[int, str]] = []
        """Remarks, each with the number of lines above it."""
        self._printed = 0
        if live is None:
            narrator.console.print(aligned(COLUMNS), markup=False, style="bold")

    def say(self, text: str) -> None:
        self._notes.append((len(self._board.answers()), text))
        if self._live is None:
            self._narrator.say(f"\n{text}\n")

    def draw(self) -> None:
        if self._live is not None:
            self._live.update(self.picture(), refresh=True)
            return
        for answer in self._board.answers()[self._printed :]:
            if answer.final is None:
                return
            self._narrator.say(aligned(answer.cells()))
            self._printed += 1

    def picture(self) -> Group:
        lines = [Text(aligned(COLUMNS), style="bold")]
        answers = self._board.answers()
        for place in range(len(answers) + 1):
            lines += [Text(f"\n{text}\n") for at, text in self._notes if at == place]
            if place < len(answers):
                lines.append(Text(aligned(answers[place].cells())))
        return Group(*lines)


def aligned(cells: tuple[str, ...]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()
