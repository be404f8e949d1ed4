"""Calls of a scalar function written in Python: with one value of each argument at a time, or with whole columns."""

from __future__ import annotations

import traceback
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from millstream.algebra.python.code import code_of
from millstream.algebra.python.definition import ARROW, VALUE
from millstream.algebra.python.reference import Reference
from millstream.algebra.types import Type, format_value
from millstream.errors import CodeError, reason_of
from millstream.runtime.python.results import column, whole_column

RAISED = (Exception, SystemExit)
"""What a user's code may raise that ends its query, and not the program."""
_LONGEST_VALUE = 60
_RUNTIME = Path(__file__).parents[1]


def apply(reference: Reference, arguments: Sequence[pl.Series], height: int, type_: Type) -> pl.Series:
    """Return the results of a function for each row of its arguments; raise CodeError if it fails."""
    definition = code_of(reference)
    code, style = definition.code, definition.declaration.style
    if style == VALUE:
        return _by_value(reference.name, code, arguments, height, type_)
    convert: Callable[[pl.Series], Any] = pl.Series.to_arrow if style == ARROW else pl.Series.clone
    try:
        returned = code(*map(convert, arguments))
    except RAISED as error:
        raise _on_row(reference.name, lambda *columns: code(*map(convert, columns)), arguments, error) from error
    return whole_column(returned, height, type_, f"function {reference.name}")


def _on_row(name: str, code: Callable[..., Any], arguments: Sequence[pl.Series], error: BaseException) -> CodeError:
    """The error of a vectorized function, with the values of the first row on which it fails, if that row fails by
    itself."""

    def fails(end: int, first: int = 0) -> BaseException | None:
        try:
            code(*(each.slice(first, end - first) for each in arguments))
        except RAISED as found:
            return found
        return None

    at = bisect_left(range(1, len(arguments[0])), True, key=lambda end: fails(end) is not None)
    alone = fails(at + 1, at)
    if alone is None:
        return failed(f"function {name}", error)
    return failed(f"function {called(name, (each[at] for each in arguments))}", alone)


def _by_value(
    name: str, code: Callable[..., Any], arguments: Sequence[pl.Series], height: int, type_: Type
) -> pl.Series:
    results: list[Any] = []
    lists = [each.to_list() for each in arguments]
    try:
        results.extend(map(code, *lists) if lists else (code() for _ in range(height)))
    except RAISED as error:
        # `extend` has kept the results before the one that failed.
        values = next(islice(zip(*lists, strict=True), len(results), None), ())
        raise failed(f"function {called(name, values)}", error) from error
    try:
        return column(results, type_, f"function {name}")
    except CodeError:
        for place, result in enumerate(results):
            column([result], type_, f"function {called(name, [each[place] for each in lists])}")
        raise


def called(name: str, values: Iterable[Any]) -> str:
    """A call as text; long values are cut.

    >>> called("f", (1, None, "x" * 100))
    "f(1, NULL, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…)"
    """
    return f"{name}({', '.join(map(_text, values))})"


def _text(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else format_value(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def failed(what: str, error: BaseException) -> CodeError:
    """The error of code that has raised another one; it names the line of the code: the first that is not of the
    runtime itself."""
    frames = traceback.extract_tb(error.__traceback__)
    own = next((frame for frame in frames if not Path(frame.filename).is_relative_to(_RUNTIME)), None)
    where = "" if own is None else f" ({Path(own.filename).name}, line {own.lineno})"
    return CodeError("M6054", f"{what} raised {reason_of(error)}{where}")
