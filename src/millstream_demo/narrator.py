"""The narrator prints a demo: statements before they run, a line every second, small tables of results.

On a terminal, statements are coloured and a wait has a spinner; elsewhere all output is plain lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax

Cell = int | float | str | None


class Narrator:
    def __init__(self, console: Console, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.console, self._clock = console, clock
        self._begun, self._seconds = clock(), seconds
        self._widths: list[int] = []

    def left(self, least: float = 0.0) -> float:
        """Seconds until the demo should end, at least `least`."""
        return max(least, self._begun + self._seconds - self._clock())

    def say(self, text: str = "") -> None:
        self.console.print(text, markup=False)

    def title(self, text: str) -> None:
        self.console.print(text, markup=False, style="bold")

    def statement(self, text: str) -> None:
        """Show a statement, between empty lines."""
        shown = f"{text.strip().rstrip(';')};"
        self.say()
        if self.console.is_terminal:
            self.console.print(Syntax(shown, "sql", theme="ansi_dark", background_color="default"))
        else:
            self.say(shown)
        self.say()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Print the purpose of a wait, then its duration."""
        begun = self._clock()
        if self.console.is_terminal:
            spinner = (SpinnerColumn(), TextColumn("{task.description} …"), TimeElapsedColumn())
            with Progress(*spinner, console=self.console, transient=True) as progress:
                progress.add_task(what, total=None)
                yield
        else:
            self.say(f"{what} …")
            yield
        self.say(f"{what}: {self._clock() - begun:.1f} s")

    @contextmanager
    def live(self) -> Iterator[Live | None]:
        """A picture that is redrawn in place; None where that is not possible."""
        if not self.console.is_terminal or self.console.is_dumb_terminal:
            yield None
            return
        with Live(console=self.console, auto_refresh=False) as live:
            yield live

    def columns(self, *names: str) -> None:
        """Print the names of the columns of the lines that follow."""
        self._widths = [max(len(name), 8) for name in names]
        self.console.print(_aligned(names, self._widths), markup=False, style="bold")

    def line(self, *values: Cell) -> None:
        self.say(_aligned([text_of(value) for value in values], self._widths))

    def table(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print rows of results, indented. Integers may be identifiers, so their digits are not grouped."""
        shown = [[str(value) if isinstance(value, int) else text_of(value) for value in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(names, *shown, strict=True)]
        self.console.print(f"    {_aligned(names, widths)}", markup=False, style="bold")
        for row in shown:
            self.say(f"    {_aligned(row, widths)}")


def text_of(value: Any) -> str:
    """
    >>> [text_of(value) for value in (12345, 0.25, None, "blue clock")]
    ['12,345', '0.2', '–', 'blue clock']
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
