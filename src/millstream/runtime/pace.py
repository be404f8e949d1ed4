"""PACE: a union in the order of arrival, without tuples that are too late.

| | |
|---|---|
| computes | the tuples whose paced column is at most `tolerance` below the highest value that has arrived |
| order | of arrival; the paced column is the time of the result |
| state | the highest value, and the promises of each input, as a union |
| punctuation in → purged → out | as a union |
| progress | the highest value minus the tolerance, or the lowest time of the inputs if that is later |
| feedback | `~[column < highest - tolerance]` to all inputs, after a tuple was dropped, if the bound has risen |
| cost | a running maximum over the page |

A tuple without a value in the paced column is dropped. Every dropped tuple counts as late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.upstream import Upstream
from millstream.runtime.operator.capabilities import Counts, GuardsItself
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_values import time_value
from millstream.runtime.union import Union


@carries_out("pace")
class Pace(Union, GuardsItself, Counts):
    timed = True

    def __init__(
        self, schema: Schema, members: Sequence[Schema], column: str, tolerance: int, feedback: bool = True
    ) -> None:
        super().__init__(schema, members, merges=False)
        self._column, self._tolerance, self._feedback = column, tolerance, feedback
        position = schema.index(column)
        self._own_columns = [member.names[position] for member in members]
        self._distances = [member.times.get(name) for member, name in zip(members, self._own_columns, strict=True)]
        """The paced column of each member minus its time, where that is constant."""
        self._highest = NEVER
        self._sent = NEVER
        self.late = 0

    def process(self, inputs: Sequence[Input]) -> Output:
        dropped = self.late
        output = super().process(inputs)
        if self.late == dropped or not self._feedback or self._bound <= self._sent:
            return output
        self._sent = self._bound
        return Output(output.rows, output.punctuations, upstream=self._messages())

    def _merge(self, ports: Sequence[pl.DataFrame | None]) -> pl.DataFrame | None:
        rows = super()._merge(ports)
        if rows is None:
            return None
        values = rows.get_column(self._column).cast(pl.Int64)
        times = values.fill_null(NEVER).to_numpy()
        highest = np.maximum(np.maximum.accumulate(times), self._highest)
        # a difference that does not fit wraps around, and is not used
        bounds = np.where(highest >= NEVER + self._tolerance, highest - self._tolerance, NEVER)
        useful = (times >= bounds) & values.is_not_null().to_numpy()
        self._highest = int(highest[-1])
        rows = rows.with_columns(values.alias(TS))
        if useful.all():
            return rows
        self.late += int(np.count_nonzero(~useful))
        return where(rows, pl.Series(useful))

    @property
    def _bound(self) -> int:
        """The lowest value of the paced column that is not dropped."""
        return max(NEVER, self._highest - self._tolerance)

    def _messages(self) -> tuple[tuple[int, Upstream], ...]:
        """Tell every input which tuples would be dropped."""
        value = time_value(self._bound, self.schema.type_of(self._column))
        if value is None:
            return ()
        patterns = (Pattern.of({name: below(value)}) for name in self._own_columns)
        return tuple((port, Feedback(Intent.ASSUMED, pattern)) for port, pattern in enumerate(patterns))

    def _progress(self) -> int:
        """The engine emits the bound on the output's time."""
        return NEVER

    def output_bound(self, bounds: Sequence[int]) -> int:
        times = [FOREVER if bound == FOREVER else self._own(port, bound) for port, bound in enumerate(bounds)]
        return max(self._bound, min(times))

    def _own(self, port: int, bound: int) -> int:
        """The bound on an input's time as a bound on the paced column."""
        distance = self._distances[port]
        return NEVER if distance is None or bound == NEVER else bound + distance

    def counts(self) -> Mapping[str, int]:
        return {"late": self.late}

    def scalars(self) -> dict[str, Any]:
        return super().scalars() | {"highest": self._highest, "sent": self._sent, "late": self.late}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        super().restore_scalars(values)
        self._highest, self._sent, self.late = values["highest"], values["sent"], values["late"]
