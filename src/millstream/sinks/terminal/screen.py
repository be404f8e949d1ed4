"""The terminal of the process, which all queries share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

import polars as pl
from rich.console import Console

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.sinks.terminal.live_screen import LiveScreen
from millstream.sinks.terminal.plain_screen import PlainScreen


class Panel(Protocol):
    """The part of a screen that shows one query."""

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None: ...


class Screen(Protocol):
    def add(self, query: str, schema: Schema, rows: int | None) -> Panel: ...

    def remove(self, panel: Panel) -> None: ...

    @property
    def in_use(self) -> bool: ...


def screen_on(console: Console) -> Screen:
    """Return a live display if the console can move its cursor, else plain lines."""
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveScreen(console)
    return PlainScreen(console)


class SharedScreen:
    """The standard output at the time when the first query is shown, until the last one is removed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._screen: Screen | None = None

    @property
    def in_use(self) -> bool:
        return self._screen is not None and self._screen.in_use

    def add(self, query: str, schema: Schema, rows: int | None) -> Panel:
        with self._lock:
            if self._screen is None or not self._screen.in_use:
                # A file or a pipe gets no escape codes, even if the environment forces colours.
                forced = None if sys.stdout.isatty() else False
                self._screen = screen_on(Console(highlight=False, force_terminal=forced))
            return self._screen.add(query, schema, rows)

    def remove(self, panel: Panel) -> None:
        with self._lock:
            if self._screen is not None:
                self._screen.remove(panel)


TERMINAL = SharedScreen()
