"""A chain of selections and projections as one step.

| | |
|---|---|
| computes | the result of its stages, applied one after the other |
| state | that of its stages (none but emitted punctuations) |
| punctuation in → purged → out | through the stages in order → nothing → the output of the last stage |
| cost | one pass: the condition and all new columns are computed together, then each column is filtered |

Stages are the operators themselves and forward punctuation one after the other. For rows the planner turns the whole
chain into one condition and one list of columns over the input page, since handing a page from operator to operator
would cost more than the work on it. New columns are computed before the filter. That is safe for rows that the
condition drops: an expression yields NULL or a value that is not used, and a value that does not fit its type is an
error only on a row that is kept (`runtime/expression/checks.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.expression import Expression
from millstream.runtime.operator.capabilities import HoldsNothing, KeepsPosition, UsesValues
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.pipeline.project import Columns, Project
from millstream.runtime.pipeline.select import Select


class Pipeline(Operator, HoldsNothing, UsesValues, KeepsPosition):
    """`condition` and `items` are over the columns of the input page."""

    def __init__(
        self,
        stages: Sequence[Select | Project],
        condition: Expression | None,
        items: Sequence[tuple[str, Expression]],
    ) -> None:
        self.stages = tuple(stages)
        self.schema = stages[-1].schema
        self._columns = Columns(self.schema, items, condition)

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None else self._columns(port.rows)
        punctuations = port.punctuations
        if punctuations is not None:
            for stage in self.stages:
                punctuations = stage.pass_on(punctuations)
        return Output(rows, punctuations or None)

    def uses(self, rows: pl.DataFrame, column: str) -> pl.Series:
        return self._columns.uses(rows, column)

    def meet(self, port: int, element: Element) -> Output:
        for stage in self.stages:
            (element,) = stage.meet(port, element).elements
        return Output(elements=(element,))

    def scalars(self) -> dict[str, Any]:
        return {str(place): stage.scalars() for place, stage in enumerate(self.stages)}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        for place, stage in enumerate(self.stages):
            stage.restore_scalars(values[str(place)])
