"""Punctuation on a column that time closes.

| | |
|---|---|
| computes | its input, with a copy of the column |
| state | the time of the last punctuation made |
| punctuation in → purged → out | p → nothing → p |
| progress | the input's; time t also becomes `[copy < f(t)]`, where the column is never below f of its timestamp |
| cost | a pointer a page; a punctuation for each step in which time advances |

It asks for no time: it holds nothing that waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS, Schema
from millstream.algebra.time_limits import Limit
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_closing import TimeClosing


@carries_out("time_punctuation")
class TimePunctuation(Operator):
    timed = True
    passes_early = True
    row_wise = True

    def __init__(self, schema: Schema, column: str, limit: Limit) -> None:
        self.schema = schema
        self._column, self._copy = column, limit.column
        self._closing = TimeClosing([limit])
        self._told = NEVER

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        rows, punctuations = port.rows, port.punctuations
        if rows is not None:
            copied = rows.get_column(self._column).alias(self._copy)
            rows = rows.select(*rows.columns[:-1]).hstack([copied, rows.get_column(TS)])
        time = max(port.bound, NEVER if punctuations is None else punctuations.progress)
        if time > self._told:
            self._told = time
            closed = self._closing.advance(time)
            punctuations = closed if punctuations is None else Punctuations.concat([punctuations, closed])
        return Output(rows, punctuations or None)

    def scalars(self) -> dict[str, Any]:
        return {"told": self._told}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._told = values["told"]
