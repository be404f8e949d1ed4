"""The live display in a terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time

import pytest
from rich.cells import cell_len
from rich.console import Console

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.sinks.terminal.console import ConsoleSink
from millstream.sinks.terminal.live_screen import LiveScreen
from millstream.sinks.terminal.live_table import LiveTable
from millstream.sinks.terminal.screen import screen_on
from tests.paths import ROOT
from tests.sinks.sample import BEFORE_NOON, COUNTS, HOT, NOON, frame, hot

TIMES = [(f"time_{n}", Type.TIMESTAMP) for n in range(9)]
SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


def console(width: int = 100, height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, record=True)


def lines(table: LiveTable, width: int = 100, height: int = 40) -> list[str]:
    shown = Console(file=io.StringIO(), width=width, record=True)
    shown.print(table.draw(width, height))
    return [line.rstrip() for line in shown.export_text().splitlines()]


def test_what_is_drawn() -> None:
    now = 0.0
    table = LiveTable("hot", HOT, 2, lambda: now)
    assert lines(table)[-2] == "0 rows · 0 rows/s · waiting for the first batch"
    now = 2.0
    table.write(6, hot(1, 2, 3), [])
    table.write(7, frame(HOT, (1234567, None, 2.0, NOON)), [BEFORE_NOON])
    assert lines(table) == [
        "hot",
        "auction  item      price  ts",
        " BIGINT  VARCHAR  DOUBLE  TIMESTAMP",
        "─" * 45,
        "      3  lamp        2.5  2024-01-02 12:00:00",
        "1234567  NULL        2.0  2024-01-02 12:00:00",
        "4 rows · 2 rows/s · batch 7 · [ts < 2024-01-02 12:00:00]",
        "",
    ]
    now = 12.0
    assert "4 rows · 0 rows/s" in lines(table)[-2]
    assert lines(table, height=1)[4].startswith("1234567")


def test_null_is_dim_and_text_is_not() -> None:
    table = LiveTable("hot", HOT, 5, time.monotonic)
    table.write(0, frame(HOT, (None, "NULL", 1.0, NOON)), [])
    shown = console()
    shown.print(table)
    drawn = shown.export_text(styles=True)
    assert re.search(r"\x1b\[2m\s*NULL", drawn) and re.search(r" NULL {5,}1\.0", drawn)


@pytest.mark.parametrize("width", [1, 8, 20, 60, 100, 160])
def test_it_keeps_to_the_width(width: int) -> None:
    schema = Schema.of(("a_rather_long_name", Type.BIGINT), ("語語語語語語", Type.VARCHAR), *TIMES)
    table = LiveTable("a query with a long name", schema, 3, time.monotonic)
    table.write(0, frame(schema, (12345678, "語" * 100, *(NOON for _ in TIMES))), [BEFORE_NOON])
    drawn = lines(table, width)
    assert len(drawn) == 7 and all(cell_len(line) <= width for line in drawn)
    if width >= 20:
        assert "12345678" in drawn[4]
    if width >= 60:
        assert "…" in drawn[4] and "more column" in drawn[5]
        assert drawn[4].count("2024-01-02 12:00:00") == (width - 18) // 21


def test_queries_share_one_display() -> None:
    shown = console(height=24)
    screen = screen_on(shown)
    assert isinstance(screen, LiveScreen)
    hot_sink, counts = ConsoleSink(screen=screen), ConsoleSink(rows=30, screen=screen)
    hot_sink.open("hot", HOT)
    counts.open("counts", COUNTS)
    hot_sink.write(0, hot(1), [])
    hot_sink.write(0, hot(1), [])
    counts.write(0, frame(COUNTS, *((n,) for n in range(100, 140))), [])
    probe = Console(file=io.StringIO(), width=80, height=24, record=True)
    probe.print(screen)
    together = probe.export_text().splitlines()
    assert "hot" in together and "counts" in together and len(together) <= 24
    # The small table leaves its height to the other: 24 - 1 - 7 - 6 around the rows.
    assert [int(line) for line in together if line.strip().isdigit()] == list(range(130, 140))
    hot_sink.close()
    assert screen.in_use and _drawing() == 1
    counts.close()
    counts.close()
    assert not screen.in_use and _drawing() == 0
    written = shown.file.getvalue()
    assert written.count(HIDE_CURSOR) == 1 and written.count(SHOW_CURSOR) == 1
    assert written.index(SHOW_CURSOR) > written.rindex("139")
    assert "1 row · 1 rows/s · batch 0" in written and "40 rows · " in written


def _drawing() -> int:
    """Number of drawing threads; a stopped one ends within a quarter of a second."""
    time.sleep(0.5)
    return sum("RefreshThread" in type(thread).__name__ for thread in threading.enumerate())


def test_a_screen_can_be_used_again() -> None:
    screen = LiveScreen(console())
    sink = ConsoleSink(screen=screen)
    for batch in range(3):
        sink.open("hot", HOT)
        sink.write(batch, hot(batch), [])
        sink.close()
    assert not screen.in_use


PROGRAM = """
import sys, time
from millstream.sinks import make_sink
from tests.sinks.sample import HOT, hot
sinks = [make_sink("console"), make_sink("console", {"rows": "3"})]
for name, sink in zip(("first", "second"), sinks):
    sink.open(name, HOT)
try:
    for batch in range(10_000):
        for sink in sinks:
            sink.write(batch, hot(batch), [])
        if batch == 3:
            print("between the tables")
        time.sleep(0.02)
finally:
    if sys.argv[1] == "close":
        for sink in sinks:
            sink.close()
"""


@pytest.mark.parametrize("closing", ["close", "forget"])
def test_interrupted_in_a_terminal(closing: str) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, closing], cwd=ROOT, env=environment, stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    written = b""
    deadline = time.monotonic() + 60
    interrupted = False
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                written += os.read(ours, 65536)
            except OSError:
                break
        if not interrupted and re.search(rb"batch \d\d", written):
            program.send_signal(signal.SIGINT)
            interrupted = True
    os.close(ours)
    program.wait(10)
    text = written.decode()
    assert interrupted and "KeyboardInterrupt" in text and "between the tables" in text
    assert text.count(HIDE_CURSOR) == 1 and text.rindex(SHOW_CURSOR) > text.rindex("rows/s")
