"""Comparison of rows: as a bag or in order, numbers with a relative tolerance of 1e-9."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from millstream.algebra.types import format_value

TOLERANCE = 1e-9
Row = tuple[Any, ...]


def same_value(left: Any, right: Any) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        if left is None or right is None:
            return left is right
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE * 1e-3)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return bool(left == right)


def same_row(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(map(same_value, left, right))


def difference(expected: Sequence[Row], found: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the expected rows that are missing and the found rows that are extra, as bags."""
    pool: dict[Row, list[Row]] = {}
    for row in found:
        pool.setdefault(_rough(row), []).append(row)
    unmatched = [row for row in expected if not _take(row, pool.get(_rough(row), []))]
    extra = [row for rows in pool.values() for row in rows]
    # Equal floats near a rounding boundary may have different keys.
    missing = [row for row in unmatched if not _take(row, extra)]
    return missing, extra


def _take(row: Row, rows: list[Row]) -> bool:
    """Remove one equal row from `rows`; return False if there is none."""
    at = next((i for i, other in enumerate(rows) if same_row(row, other)), None)
    if at is not None:
        rows.pop(at)
    return at is not None


def _rough(row: Row) -> Row:
    """A key that equal rows share: numbers rounded to six significant digits."""
    return tuple(_rough_value(value) for value in row)


def _rough_value(value: Any) -> Any:
    if isinstance(value, list):
        return _rough(tuple(value))
    return float(f"{value:.6g}") if isinstance(value, int | float) and not isinstance(value, bool) else value


def show(row: Row) -> str:
    return " | ".join(map(format_value, row))
