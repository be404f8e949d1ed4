"""Results as plain aligned lines without escape codes: for a file, a pipe or a dumb terminal."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import polars as pl
from rich.cells import cell_len
from rich.console import Console

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.amounts import amount
from millstream.sinks.terminal.cells import align, cells, harmless, is_right_aligned, shorten

WIDEST = 32
"""Columns are padded to at most this width; a longer cell pushes the rest of its line to the right."""


class PlainScreen:
    """The lines of a batch stay together. If several queries are shown, each line begins with its query's name."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._lock = Lock()
        self._panels: list[PlainLines] = []

    @property
    def in_use(self) -> bool:
        return bool(self._panels)

    def add(self, query: str, schema: Schema, rows: int | None) -> PlainLines:
        with self._lock:
            self._panels.append(PlainLines(self, query, schema, rows))
            return self._panels[-1]

    def remove(self, panel: object) -> None:
        with self._lock:
            self._panels = [other for other in self._panels if other is not panel]

    def print(self, query: str, lines: Sequence[str]) -> None:
        with self._lock:
            widest = max((cell_len(panel.query) for panel in self._panels), default=0)
            before = f"{align(query, widest, right=False)} | " if len(self._panels) > 1 else ""
            text = "".join(f"{before}{line.rstrip()}\n" for line in lines)
            encoding = self.console.encoding
            self.console.file.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self.console.file.flush()


class PlainLines:
    """The lines of one query; the header precedes the first."""

    def __init__(self, screen: PlainScreen, query: str, schema: Schema, rows: int | None) -> None:
        self.query = harmless(query)
        self._screen, self._schema, self._limit = screen, schema, rows
        self._widths = [0] * len(schema)
        self._right = [is_right_aligned(attribute.type) for attribute in schema]
        self._begun = False

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:  # noqa: ARG002
        if not rows.height:
            return
        shown = rows if self._limit is None else rows.tail(self._limit)
        self._screen.print(self.query, self.lines(shown, rows.height - shown.height))

    def lines(self, shown: pl.DataFrame, before: int = 0) -> list[str]:
        """The lines of some rows, the first time with a header. `before`: number of rows before them."""
        longest = self._screen.console.width
        texts = [
            ["NULL" if cell is None else shorten(cell, longest) for cell in row] for row in cells(shown, self._schema)
        ]
        header = [[harmless(a.name) for a in self._schema], [a.type.value for a in self._schema]]
        for row in texts if self._begun else header + texts:
            self._widths = [
                max(width, min(cell_len(cell), WIDEST)) for width, cell in zip(self._widths, row, strict=True)
            ]
        lines: list[str] = []
        if not self._begun:
            lines += [self._line(row) for row in header]
            lines.append("-+-".join("-" * width for width in self._widths))
        self._begun = True
        if before:
            lines.append(f"({amount(before, 'row')} before these)")
        return lines + [self._line(row) for row in texts]

    def _line(self, row: Sequence[str]) -> str:
        parts = zip(row, self._widths, self._right, strict=True)
        return " | ".join(align(cell, width, right=right) for cell, width, right in parts)


def print_rows(console: Console, schema: Schema, rows: pl.DataFrame) -> None:
    """Print the rows of a query that runs once, as those of other queries; without rows the header alone."""
    screen = PlainScreen(console)
    screen.print("", PlainLines(screen, "", schema, None).lines(rows))
