"""A live display of all queries in a terminal: one table below the other, redrawn a few times a second.

Writing a batch only updates the table's data; the display's own thread draws it. So a batch never waits for the
terminal, and no thread requests the display's lock while it holds a table's.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from threading import RLock

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live

from millstream.algebra.schema import Schema
from millstream.sinks.terminal.live_table import LiveTable

ROWS = 12


class LiveScreen:
    """The display starts with the first table. It stops with the last one, which stays drawn."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self._clock = clock
        self._lock = RLock()
        self._tables: tuple[LiveTable, ...] = ()
        self._live: Live | None = None

    @property
    def in_use(self) -> bool:
        return bool(self._tables)

    def add(self, query: str, schema: Schema, rows: int | None) -> LiveTable:
        with self._lock:
            table = LiveTable(query, schema, rows or ROWS, self._clock)
            self._tables += (table,)
            if self._live is None:
                self._live = Live(self, console=self.console, refresh_per_second=4)
                # A program may exit without closing its queries; the cursor must reappear.
                atexit.register(self._live.stop)
                self._live.start(refresh=True)
            return table

    def remove(self, panel: object) -> None:
        with self._lock:
            left = tuple(table for table in self._tables if table is not panel)
            if self._live is None or len(left) == len(self._tables):
                return
            if left:
                self._tables = left
                self.console.print(panel)
                return
            live, self._live = self._live, None
            try:
                live.stop()
            finally:
                atexit.unregister(live.stop)
                self._tables = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Fit the tables into the terminal's height; large tables share the lines that small ones leave."""
        tables = self._tables
        left = console.height - 1
        heights: dict[int, int] = {}
        by_height = sorted(tables, key=lambda table: table.height)
        for place, table in enumerate(by_height):
            heights[id(table)] = min(table.height, left // (len(tables) - place))
            left -= heights[id(table)]
        yield Group(*(table.draw(options.max_width, heights[id(table)]) for table in tables))
