"""A chain of selections and projections as one step.

| | |
|---|---|
| computes | what its stages compute one after the other |
| state | that of its stages (none but the punctuation already put out) |
| punctuation in → purged → out | through the stages in order → nothing → what the last stage lets out |
| cost | one pass: the condition and all new columns are computed together, then each column is filtered |

Stages are the operators themselves and pass punctuation on one after the other. For rows the planner gives the whole
chain as one condition and one list of columns over the input page, since handing a page from operator to operator would
cost more than the work on it. New columns are computed before the condition has taken effect; expressions never fail,
they yield NULL, so rows that go need not be spared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.expression import Column, Expression
from millstream.algebra.schema import TS
from millstream.runtime.expression.evaluate import predicate, to_polars
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.pipeline.project import Project
from millstream.runtime.pipeline.select import Select

_KEEP = "__keep"


class Pipeline(Operator):
    """`condition` and `items` are over the columns of the input page."""

    def __init__(
        self,
        stages: Sequence[Select | Project],
        condition: Expression | None,
        items: Sequence[tuple[str, Expression]],
    ) -> None:
        self.stages = tuple(stages)
        self.schema = stages[-1].schema
        self._conditional = condition is not None
        # The hidden timestamp is not plain: selected, it becomes a TIMESTAMP.
        self._plain = {name: i.name for name, i in items if isinstance(i, Column) and i.name != TS} | {TS: TS}
        self._computed = [to_polars(item).alias(name) for name, item in items if name not in self._plain]
        if condition is not None:
            self._computed.append(predicate(condition).fill_null(False).alias(_KEEP))
        # Where the visible time comes out, the hidden one need not be filtered too: it is the same number.
        self._time = self.schema.time if self.schema.time in self._plain else None
        self._order = list(self.schema.names) if self._time is not None else [*self.schema.names, TS]

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None else self._rows(port.rows)
        punctuations = port.punctuations
        if punctuations is not None:
            for stage in self.stages:
                punctuations = stage.pass_on(punctuations)
        return Output(rows, punctuations or None)

    def meet(self, port: int, element: Element) -> Output:
        for stage in self.stages:
            (element,) = stage.meet(port, element).elements
        return Output(elements=(element,))

    def _rows(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        # Expressions over literals alone make one row of many: the timestamp keeps the height.
        made = rows.select(*self._computed, TS) if self._computed else rows
        columns = [
            rows.get_column(self._plain[name]).alias(name) if name in self._plain else made.get_column(name)
            for name in self._order
        ]
        if self._conditional:
            keep = made.get_column(_KEEP)
            if not keep.any():
                return None
            if not keep.all():
                columns = [column.filter(keep) for column in columns]
        if self._time is not None:
            columns.append(columns[self._order.index(self._time)].cast(pl.Int64).alias(TS))
        return pl.DataFrame(columns)

    def scalars(self) -> dict[str, Any]:
        return {str(place): stage.scalars() for place, stage in enumerate(self.stages)}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        for place, stage in enumerate(self.stages):
            stage.restore_scalars(values[str(place)])
