"""The table of one query in a live display: its last rows, and below them its counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock

import polars as pl
from rich import box
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Attribute, Schema
from millstream.rate import Rate
from millstream.sinks.terminal.cells import Cell, cells, harmless, is_right_aligned, shorten
from millstream.sinks.terminal.widths import Width, fit

GAP = 2
AROUND = 6
"""Lines of a table apart from its rows: the title, names, types, a rule, the counters, and an empty line."""


class LiveTable:
    def __init__(self, query: str, schema: Schema, rows: int, clock: Callable[[], float]) -> None:
        self._query, self._schema = harmless(query), schema
        self._lock = Lock()
        self._clock = clock
        self._rate = Rate(clock())
        self._rows: deque[tuple[Cell, ...]] = deque(maxlen=rows)
        self._widths = [Width.of(attribute) for attribute in schema]
        self._rows_out = 0
        self._batch: int | None = None
        self._punctuation = ""

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        last = list(cells(rows.tail(self._rows.maxlen or 0), self._schema))
        with self._lock:
            self._rows += last
            for row in last:
                for width, cell in zip(self._widths, row, strict=True):
                    width.see(cell)
            self._rows_out += rows.height
            self._rate.add(self._clock(), rows.height)
            self._batch = batch
            if punctuations:
                self._punctuation = harmless(str(punctuations[-1]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.draw(options.max_width, self.height)

    @property
    def height(self) -> int:
        """Lines needed to show all rows kept."""
        return len(self._rows) + AROUND

    def draw(self, width: int, height: int) -> RenderableType:
        """Draw the table within a width, with as many of the last rows as the height allows, and at least one."""
        with self._lock:
            widths = fit(self._widths, width, GAP)
            grid = Table(box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False)
            for attribute, size in zip(self._schema, widths, strict=False):
                side: JustifyMethod = "right" if is_right_aligned(attribute.type) else "left"
                grid.add_column(_header(attribute, size), width=size, no_wrap=True, justify=side)
            for row in list(self._rows)[-max(height - AROUND, 1) :]:
                grid.add_row(*(_drawn(cell, size) for cell, size in zip(row, widths, strict=False)))
            title = Text(self._query, style="bold", no_wrap=True, overflow="ellipsis")
            counters = Text(self._counters(len(self._schema) - len(widths)), no_wrap=True, overflow="ellipsis")
        return Group(title, grid, counters, "")

    def _counters(self, hidden: int) -> str:
        parts = [
            f"{self._rows_out:,} row{'s' if self._rows_out != 1 else ''}",
            f"{self._rate.at(self._clock()):,.0f} rows/s",
        ]
        parts += ["waiting for the first batch"] if self._batch is None else [f"batch {self._batch}"]
        parts += [f"{hidden} more column{'s' if hidden != 1 else ''}"] if hidden else []
        parts += [self._punctuation] if self._punctuation else []
        return " · ".join(parts)


def _header(attribute: Attribute, width: int) -> Text:
    name, type_ = shorten(harmless(attribute.name), width), shorten(attribute.type.value, width)
    return Text.assemble((name, "bold"), "\n", (type_, "dim"))


def _drawn(cell: Cell, width: int) -> Text:
    return Text("NULL", style="dim") if cell is None else Text(shorten(cell, width))
