"""User-defined aggregates over the tuples of a group and window: lists of arguments, in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from millstream.algebra.aggregate.fold import FoldCall
from millstream.algebra.program.expression import Applied
from millstream.algebra.python.aggregate_call import PythonAggregateCall
from millstream.errors import SeveralRows
from millstream.runtime.program.code import python_aggregate
from millstream.runtime.program.compile import compiled
from millstream.runtime.program.index import Row


def _one_row(name: str, rows: Sequence[Row], before: Row | None = None) -> Row | None:
    """The row that a call of an aggregate returned, else the one before. Raise SeveralRows if it returned several."""
    if len(rows) > 1:
        raise SeveralRows(
            f"aggregate '{name}' returned {len(rows)} rows for a group of a window, which takes one value;"
            f" {name}(…) OVER (…) emits all of them"
        )
    return rows[0] if rows else before


def applied(node: Applied) -> Callable[[pl.Series], pl.Series]:
    """A function of a column of structs, each with the lists of arguments of a group."""
    factory, ignores, name = compiled(node.program), node.program.ignore_nulls, node.program.name

    def value(group: dict[str, list[Any] | None]) -> Any:
        found = _last_row(name, factory, ignores, group.values())
        return None if found is None else found[node.result]

    return lambda groups: pl.Series(map(value, groups.to_list()), dtype=node.type.polars)


def fold_column(call: FoldCall, arrays: Sequence[pl.Series]) -> pl.Series:
    """The value of an aggregate in Python for each row of the arrays of arguments."""
    assert isinstance(call.call, PythonAggregateCall)
    declared = call.call.declared
    factory = python_aggregate(declared)
    groups = zip(*(array.to_list() for array in arrays), strict=True)
    found = [_last_row(declared.name, factory, declared.ignore_nulls, lists) for lists in groups]
    return pl.Series([None if row is None else row[call.result] for row in found], dtype=call.type.polars)


def _last_row(
    name: str, factory: Callable[[], Any], ignore_nulls: bool, lists: Iterable[Sequence[Any] | None]
) -> Row | None:
    """The row of TERMINATE, if it returns any, else that of the last tuple that has one."""
    rows = [*zip(*(values or () for values in lists), strict=True)]
    if ignore_nulls:
        rows = [row for row in rows if None not in row]
    if not rows:
        return None
    instance = factory()
    if (whole := getattr(instance, "whole", None)) is not None:  # a vectorized aggregate
        found: Row = whole(rows)[-1]
        return found
    last = _one_row(name, instance.initialize(*rows[0]))
    for row in rows[1:]:
        last = _one_row(name, instance.iterate(*row), last)
    ended = [*instance.terminate()]
    return _one_row(name, [last, *ended] if ended and last is not None else ended, last)
