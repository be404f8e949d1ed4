"""Errors that say which operator failed on which row."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from polars.exceptions import PanicException

from millstream.algebra.types import format_value
from millstream.errors import OperatorError, reason_of

HINT = "Nothing of this batch counts as done. When the cause is removed, start again with the same checkpoint."
FAULTS = (Exception, PanicException)
"""What an operator can raise; a panic of Polars is no Exception."""
_LONGEST_VALUE = 60


def failure(
    error: OperatorError,
    of: str = "",
    on: str = "",
    stream: str | None = None,
    row: str | None = None,
    detail: str = "",
) -> OperatorError:
    """The error with all that is known about it."""
    made = OperatorError(error.operator, error.reason, of=of, on=on, detail=detail, hint=HINT)
    made.stream, made.row = stream, row
    return made


def row_text(rows: pl.DataFrame, at: int) -> str:
    """A row as people read it; long values are cut.

    >>> row_text(pl.DataFrame({"k": [1, 2], "name": ["a", None], "__ts": [7, 8]}), 1)
    '(k = 2, name = NULL)'
    """
    shown = {name: _text(rows.get_column(name), at) for name in rows.columns if not name.startswith("__")}
    return f"({', '.join(f'{name} = {text}' for name, text in shown.items())})"


def _text(column: pl.Series, at: int) -> str:
    try:
        text = format_value(column[at])
    except FAULTS:  # a time that Python does not know
        text = str(column.to_physical()[at])
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def blame_rows(
    operator: str, stream: str, rows: pl.DataFrame, step: Callable[[pl.DataFrame], object], error: BaseException
) -> OperatorError:
    """The error of a step without state, with the row on which it fails."""
    low, high = 0, rows.height
    while high - low > 1:
        middle = (low + high) // 2
        try:
            step(rows.slice(low, middle - low))
        except FAULTS as found:
            high, error = middle, found
        else:
            low = middle
    found_out = OperatorError(operator, reason_of(error))
    if not rows.height:
        return failure(found_out)
    values = row_text(rows, low)
    return failure(found_out, "", f" on a row of stream {stream} {values}", stream, values)
