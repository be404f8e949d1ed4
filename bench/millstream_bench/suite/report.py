"""The findings of an experiment: a table, curves, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream_bench.engine.experiment import format_cell

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(slots=True)
class Finding:
    """`figures` are where the experiment was first published; rows have one value per column."""

    name: str
    title: str
    figures: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    """Values to compare with a target."""
    curves: dict[str, Any] = field(default_factory=dict)
    """Points of a plot."""
    wall_s: float = 0.0
    """Duration of the experiment."""


def show(finding: Finding, console: Console) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from millstream_bench.suite.whole_table import print_whole

    title = f"{finding.title} ({finding.figures})" if finding.figures else finding.title
    table = Table(title=title, box=SIMPLE, title_justify="left", padding=(0, 1), pad_edge=False)
    for number, heading in enumerate(finding.columns):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in finding.rows:
        table.add_row(*(cell(value) for value in row))
    print_whole(table, console)
    for note in finding.notes:
        console.print(note, markup=False)
    console.print()


def cell(value: Any) -> str:
    """
    >>> cell(12_345), cell(12_345_678), cell(12.345), cell(None), cell("eager")
    ('12,345', '12.3 M', '12.3', '', 'eager')
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value / 1e6:.1f} M" if value >= 10_000_000 else f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 1000 else format_cell(value)


def thinned(values: Sequence[Any], most: int = 200) -> list[Any]:
    """At most about `most` of the values, evenly spread, with the last one.

    >>> thinned(range(10), 4)
    [2, 5, 8, 9]
    """
    step = -(-len(values) // most)
    return [value for place, value in enumerate(values, 1) if place % step == 0 or place == len(values)]
