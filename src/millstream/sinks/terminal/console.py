"""A sink that shows results in the terminal: a live table, or plain lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import polars as pl
from pydantic import Field

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.sinks.modes import KNOWING
from millstream.sinks.options import SinkOptions
from millstream.sinks.terminal.screen import TERMINAL, Panel, Screen


class ConsoleOptions(SinkOptions):
    rows: int | None = Field(
        default=None, ge=1, le=1000, description="number of last rows to show; 12 in a live table, else all"
    )


class ConsoleSink:
    """Console sinks share the terminal of the process, unless they are constructed with another screen."""

    modes: ClassVar = KNOWING

    def __init__(self, rows: int | None = None, screen: Screen = TERMINAL) -> None:
        self._rows = rows
        self._screen = screen
        self._panel: Panel | None = None
        self._last = -1

    def open(self, query: str, schema: Schema) -> None:
        self.close()
        self._panel = self._screen.add(query, schema, self._rows)

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        if batch > self._last and self._panel is not None:
            self._panel.write(batch, rows, punctuations)
            self._last = batch

    def close(self) -> None:
        panel, self._panel = self._panel, None
        if panel is not None:
            self._screen.remove(panel)
