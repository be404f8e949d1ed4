"""Errors that name the operator that failed, and the row that it failed on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping

import polars as pl
from polars.exceptions import PanicException

from millstream.algebra.stream_id import StreamId
from millstream.algebra.types import format_value
from millstream.errors import InputError, MillstreamError, OperatorError, reason_of

HINT = "The batch was not committed. When the cause is removed, start again with the same checkpoint."
FAULTS = (Exception, PanicException)
"""Errors that an operator can raise; a panic of Polars is not an Exception."""
_LONGEST_VALUE = 60


def failure(
    error: OperatorError,
    of: str = "",
    on: str = "",
    stream: str | None = None,
    row: str | None = None,
    detail: str = "",
) -> OperatorError:
    """The error with the query (`of`), the row or time (`on`) and the details that are known."""
    described = OperatorError(error.operator, error.reason, of=of, on=on, detail=detail, hint=HINT)
    described.stream, described.row = stream, row
    return described


def source_failure(stream: str, error: BaseException) -> MillstreamError:
    """The error of a stream whose rows cannot be read."""
    if isinstance(error, MillstreamError):
        return error
    name = StreamId.of(stream).base
    return InputError("M5047", f"the source of stream '{name}' failed: {reason_of(error)}", hint=HINT)


def queries_of(operator: str, nodes: Mapping[str, Iterable[str]]) -> str:
    """The queries that use an operator, as a part of a message, given the nodes of each query."""
    names = [query for query, used in nodes.items() if operator in used]
    return f" of {'query' if len(names) == 1 else 'queries'} {', '.join(names)}" if names else ""


def row_text(rows: pl.DataFrame, at: int) -> str:
    """A readable row; long values are cut.

    >>> row_text(pl.DataFrame({"k": [1, 2], "name": ["a", None], "__ts": [7, 8]}), 1)
    '(k = 2, name = NULL)'
    """
    shown = {name: _text(rows.get_column(name), at) for name in rows.columns if not name.startswith("__")}
    return f"({', '.join(f'{name} = {text}' for name, text in shown.items())})"


def _text(column: pl.Series, at: int) -> str:
    try:
        text = format_value(column[at])
    except FAULTS:  # a time out of Python's range
        text = str(column.to_physical()[at])
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def failure_on_row(
    operator: str, stream: str, rows: pl.DataFrame, step: Callable[[pl.DataFrame], object], error: BaseException
) -> OperatorError:
    """The error of a step without state, with the first row on which it fails."""

    def fails(end: int) -> bool:
        nonlocal error
        try:
            step(rows.head(end))
        except FAULTS as found:
            error = found
            return True
        return False

    if not rows.height:
        return failure(OperatorError(operator, reason_of(error)))
    at = bisect_left(range(1, rows.height), True, key=fails)
    values = row_text(rows, at)
    known = OperatorError(operator, reason_of(error))
    return failure(known, on=f" on a row of stream {stream} {values}", stream=stream, row=values)
