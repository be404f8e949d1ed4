"""Bodies that are hard to get right (`nasty.py`) over every kind of frame, against plain Python, cut and restarted."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.runtime.over.nasty import BODIES, Body, Row
from tests.tries import tries

FRAMES = [
    ("ROWS", None, None, False),
    ("ROWS", 0, None, False),
    ("ROWS", 2, None, False),
    ("RANGE", 0, None, False),
    ("RANGE", 4, None, False),
    ("ROWS", 4, 3, False),
    ("ROWS", 1, 3, False),
    ("RANGE", 5, 3, False),
    ("RANGE", 2, 5, False),
    ("RANGE", 0, None, True),
    ("RANGE", 3, None, True),
]
Frame = tuple[str, int | None, int | None, bool]
Tuple = tuple[int, str, int | None]


def text(frame: Frame) -> str:
    unit, size, slide, active = frame
    extent = "UNBOUNDED" if size is None else size
    return f"{unit} {extent} PRECEDING{f' SLIDE {slide}' if slide else ''}{' ACTIVE EXPIRATION' if active else ''}"


class Partition:
    """The events of one partition, as the algorithms of windows state them."""

    def __init__(self, kind: type[Body], frame: Frame) -> None:
        self.kind, (self.unit, self.size, self.slide, self.active) = kind, frame
        self.base = hasattr(kind, "BASE")
        self.places: dict[int, tuple[int, Row]] = {}
        """Place and values of the tuples in the window, by the identity of the values."""
        self.body = self.made()
        self.started, self.arrivals = False, 0

    def made(self) -> Body:
        body = self.kind()
        body.window = []
        return body

    def take(self, time: int, x: Any) -> list[Row]:
        place, self.arrivals = (self.arrivals if self.unit == "ROWS" else time), self.arrivals + 1
        row = Values((x,))
        row.place = place
        if self.size is not None and not self.active:
            for old in [old for old in self.body.window if old.place < place - self.size]:  # type: ignore[attr-defined]
                self.leave(old)
        self.body.window.append(row)
        if self.base and self.size is not None:
            return self.whole()
        found = self.body.iterate(x) if self.started else self.body.initialize(x)
        self.started = True
        return [*found, *(self.body.terminate() if self.base else [])]

    def whole(self) -> list[Row]:
        """The base version over the frame, anew."""
        body, found = self.made(), list[Row]()
        for n, (x,) in enumerate(self.body.window):
            found = body.iterate(x) if n else body.initialize(x)
        return [*found, *body.terminate()] if self.body.window else []

    def leave(self, old: Row) -> list[Row]:
        if not any(other is old for other in self.body.window):
            return []  # the body has deleted it
        found = [] if self.base else self.body.expire(old[0])
        self.body.window[:] = [other for other in self.body.window if other is not old]
        return self.whole() if self.base else found


class Values(tuple[Any, ...]):
    place: int


def meant(kind: type[Body], frame: Frame, rows: list[Tuple]) -> Counter[Any]:
    """Time, partition and result of each row."""
    _, size, slide, active = frame
    found: Counter[Any] = Counter()
    for key in {k for _, k, _ in rows}:
        own = sorted((row for row in rows if row[1] == key), key=lambda row: row[0])
        partition, slots = Partition(kind, frame), dict[int, list[Any]]()
        events = [(ts, 0, n) for n, (ts, _, _) in enumerate(own)]
        events += [(ts + size, 1, n) for n, (ts, _, _) in enumerate(own)] if active and size is not None else []
        held: dict[int, Row] = {}
        for time, leaves, n in sorted(events):
            if leaves:
                results = partition.leave(held[n])
            else:
                results = partition.take(time, own[n][2])
                held[n] = partition.body.window[-1] if partition.body.window else ()
            made = [(time, key, *result) for result in results]
            if slide is None:
                found.update(made)
            elif frame[0] == "RANGE":
                slots[time // slide] = made
            elif partition.arrivals % slide == 0:
                found.update(made)
        for emitted in slots.values():
            found.update(emitted)
    return found


def stream(draw: random.Random) -> list[Tuple]:
    rows, now = list[Tuple](), 0
    for _ in range(draw.choice([3, 9, 24])):
        now += draw.choice([0, 0, 1, 1, 2, 7])
        rows.append((now, draw.choice("aab"), draw.choice([None, -1, 0, 1, 2, 2, 3, 5])))
    return rows


def refused(kind: type[Body], frame: Frame) -> bool:
    """A window version under active expiration needs an EXPIRE that returns something."""
    return frame[3] and not hasattr(kind, "BASE") and "RETURN" not in kind.SQL.partition("EXPIRE:")[2]


CASES = [pytest.param(k, f, id=f"{k.__name__}-{text(f)}") for k in BODIES for f in FRAMES if not refused(k, f)]


@pytest.mark.parametrize(("kind", "frame"), CASES)
def test_nasty_aggregates(kind: type[Body], frame: Frame) -> None:
    for seed in range(tries(2)):
        draw = random.Random(f"{kind.__name__} {frame} {seed}")
        rows = stream(draw)
        mill = LocalMill(Options(shards=draw.choice([1, 2]), contracts="off", page_rows=draw.choice([1, 3, 8192])))
        mill.execute("CREATE STREAM s (ts BIGINT, k VARCHAR, v BIGINT) ORDER BY ts")
        mill.execute(kind.SQL)
        mill.add_query("q", f"SELECT ts, k, agg(v) OVER (PARTITION BY k {text(frame)}) AS r FROM s")
        found: Counter[Any] = Counter()
        for row in [*rows, None]:
            if row is None:
                mill.feed_line("s", "[*, *, *]")
            else:
                mill.insert("s", [row])
            if row is None or draw.random() < 0.3:
                mill.batch()
                found.update(mill.take_rows("q").rows())
                mill = mill.restarted() if draw.random() < 0.3 else mill
        assert found == meant(kind, frame, rows), (seed, rows)
