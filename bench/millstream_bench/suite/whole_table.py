"""Tables on the terminal: every number is whole, however narrow the terminal or the pipe is."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

WIDEST = 10_000


def print_whole(table: Table, console: Console) -> None:
    """Print a table at its own width; Rich would cut the cells of one that is wider than the console."""
    table.width = Measurement.get(console, console.options.update(width=WIDEST), table).maximum
    console.print(table, crop=False)
