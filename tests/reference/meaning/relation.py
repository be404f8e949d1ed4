"""Relations: finite streams as lists of `(row, timestamp)` in order of arrival."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Rows = list[tuple[Row, int]]


def by_time(rows: Rows) -> Rows:
    return sorted(rows, key=lambda pair: pair[1])
