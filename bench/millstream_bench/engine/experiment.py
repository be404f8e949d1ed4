"""The result of an experiment: parameters, measurements, text and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Experiment:
    """`figure` is where the experiment was first published; rows hold one value per column."""

    name: str
    title: str
    figure: str
    parameters: dict[str, Any]
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def column(self, name: str, **where: Any) -> list[Any]:
        """The values of a column in the rows where other columns have the values `where`."""
        at = self.columns.index(name)
        wanted = [(self.columns.index(key), value) for key, value in where.items()]
        return [row[at] for row in self.rows if all(row[i] == value for i, value in wanted)]

    def text(self) -> str:
        """The rows as an aligned table."""
        lines = [self.columns, *([format_cell(cell) for cell in row] for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        table = ["  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([f"{self.title} ({self.figure})", "", *table, *(f"  {note}" for note in self.notes), ""])

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        (folder / f"{self.name}.txt").write_text(self.text(), encoding="utf-8")


def format_cell(cell: Any) -> str:
    """
    >>> format_cell(0.000123), format_cell(12.5), format_cell(25783.4), format_cell("dfs"), format_cell(None)
    ('0.000123', '12.5', '25783', 'dfs', '–')
    """
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return str(cell)
