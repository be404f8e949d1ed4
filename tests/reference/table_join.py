"""Stream-table join, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]


def joined(
    row: Row,
    table: Sequence[Row],
    keys: Sequence[tuple[str, str]],
    residual: Callable[[Row], bool | None],
    outer: bool,
    combine: Callable[[Row, Row], Row],
) -> list[Row]:
    found = [
        combine(row, other)
        for other in table
        if all(row[a] is not None and row[a] == other[b] for a, b in keys) and residual(combine(row, other)) is True
    ]
    return found if found or not outer else [combine(row, dict.fromkeys(table[0] if table else ()))]
