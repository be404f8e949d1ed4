"""User-defined aggregates over arrays: all tuples of a group and window, in the order of time.

The value is the row of TERMINATE, if it returns one, else the last of INITIALIZE and ITERATE. An aggregate that returns
several rows, which would be dropped, fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from millstream.algebra.aggregate.fold import FoldCall
from millstream.runtime.over.evaluation import Running
from millstream.runtime.over.row_aggregate import Row, Versions
from millstream.runtime.over.versions import versions_of
from millstream.runtime.program.grouped import final_row, one_row
from millstream.runtime.python import aggregate  # noqa: F401 - registers its versions


def fold_column(call: FoldCall, arrays: Sequence[pl.Series]) -> pl.Series:
    """Return the value of each row of the arrays."""
    versions = versions_of(call.call)
    rows = zip(*(array.to_list() for array in arrays), strict=True)
    values: list[Any] = []
    for lists in rows:
        last = None if None in lists else _folded(versions, list(zip(*lists, strict=True)), call.call.function)
        values.append(None if last is None else last[call.result])
    return pl.Series(values, dtype=call.type.polars)


def _folded(versions: Versions, tuples: list[Row], name: str) -> Row | None:
    if versions.ignore_nulls:
        tuples = [each for each in tuples if None not in each]
    if not tuples:
        return None
    running = Running(versions, terminates=False)
    instance = running.instance
    last: Row | None = None
    if (whole := getattr(instance.aggregate, "whole", None)) is not None:
        found: Row = whole(tuples)[-1]
        return found
    for number, arguments in enumerate(tuples):
        last = one_row(name, running.take(number, number, 0, arguments), last)
    return final_row(name, [*instance.aggregate.terminate()], last)
