"""Punctuation on a column that time closes.

| | |
|---|---|
| computes | its input, with a copy of the column |
| state | the time of the last punctuation made; values of the column that time has not passed |
| punctuation in → purged → out | p → nothing → p |
| progress | the input's; time t also becomes `[copy < f(t)]`, where the column is never below f of its timestamp |
| cost | a pointer a page; a punctuation for each value and each step in which time advances |

A reader that stores tuples holds a punctuation back while one of them matches. With a punctuation for each value the
tuples before the oldest stored one are closed, however many values a step has. It asks for no time: it holds nothing
that waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS, Schema
from millstream.algebra.time_limits import Limit
from millstream.runtime.operator.capabilities import HoldsNothing
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_closing import TimeClosing


@carries_out("time_punctuation")
class TimePunctuation(Operator, HoldsNothing):
    timed = True

    def __init__(self, schema: Schema, column: str, limit: Limit) -> None:
        self.schema = schema
        self._column, self._copy = column, limit.column
        self._closing = TimeClosing([limit])
        self._told = NEVER
        self._values = pl.Series(self._copy, [], schema.polars[column])
        """Different values of the column above the last punctuation."""
        self._limit: Any = None
        """Bound of the last punctuation since the operator was made."""

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        rows, punctuations = port.rows, port.punctuations
        if rows is not None:
            copied = rows.get_column(self._column).alias(self._copy)
            rows = rows.select(*rows.columns[:-1]).hstack([copied, rows.get_column(TS)])
            later = copied.drop_nulls() if self._limit is None else copied.filter(copied > self._limit)
            self._values = pl.concat([self._values, later]).unique()
        time = max(port.bound, NEVER if punctuations is None else punctuations.progress)
        if time > self._told:
            self._told = time
            closed = self._each(self._closing.advance(time))
            punctuations = closed if punctuations is None else Punctuations.concat([punctuations, closed])
        return Output(rows, punctuations or None)

    def _each(self, closed: Punctuations) -> Punctuations:
        """Return what time closes in steps: up to each value, then up to the limit."""
        if not len(closed):
            return closed
        limit = _bounds(closed)
        self._limit = limit.item()
        passed = self._values <= self._limit
        bounds = pl.concat([self._values.filter(passed), limit.alias(self._copy)]).unique().sort()
        self._values = self._values.filter(~passed)
        return Punctuations.from_column(self._copy, "<", bounds)

    def scalars(self) -> dict[str, Any]:
        return {"told": self._told, "values": Punctuations.from_column(self._copy, "<", self._values.sort())}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._told = values["told"]
        held = values["values"]
        self._values = _bounds(held).alias(self._copy) if len(held) else self._values.clear()


def _bounds(punctuations: Punctuations) -> pl.Series:
    """Return the bounds of punctuations on one column."""
    (group,) = punctuations.parts.groups
    (column,) = group.columns.values()
    return column
