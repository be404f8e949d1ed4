"""Selection.

| | |
|---|---|
| computes | the tuples for which the predicate is true (not false, not NULL), in order, timestamps unchanged |
| state | none |
| punctuation in → purged → out | any → nothing is held → itself: a tuple that does not arrive is not selected |
| progress | forwarded |
| cost | one pass over the columns that the predicate reads, one over the rest if some tuples are dropped |
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.expression import Column, Expression
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import Schema
from millstream.runtime.expression.checks import rows_using
from millstream.runtime.expression.condition import Condition
from millstream.runtime.operator.capabilities import HoldsNothing, KeepsPosition, UsesValues
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import carries_out


@carries_out("select")
class Select(Operator, HoldsNothing, UsesValues, KeepsPosition):
    def __init__(self, schema: Schema, predicate_: Expression) -> None:
        self.schema = schema
        self._predicate, self._condition = predicate_, Condition(predicate_)

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None else self._condition.filter(port.rows)
        if rows is not None and not rows.height:
            rows = None
        return Output(rows, port.punctuations or None)

    def uses(self, rows: pl.DataFrame, column: str) -> pl.Series:
        return rows_using(rows, column, self._predicate, [Column(self.schema.type_of(column), column)])

    def meet(self, port: int, element: Element) -> Output:  # noqa: ARG002
        return Output(elements=(element,))

    def pass_on(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations to emit for these: all of them."""
        return punctuations
