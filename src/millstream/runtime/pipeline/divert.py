"""Diversion of the tuples whose values do not fit: a selection that is counted.

| | |
|---|---|
| computes | the tuples of which all values fit, or (in the companion) the others, in order, timestamps unchanged |
| state | none; the counters of its node say how many tuples it has diverted |
| punctuation in → purged → out | any → nothing is held → itself |
| progress | forwarded |
| cost | that of a selection |
"""

from __future__ import annotations

from millstream.algebra.expression import Expression, Unary
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.runtime.engine.statistics import Counters
from millstream.runtime.operator.capabilities import Reports
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.pipeline.select import Select


@carries_out("divert")
class Divert(Select, Reports):
    def __init__(self, schema: Schema, fails: Expression, stream: str, kept: bool) -> None:
        super().__init__(schema, Unary(Type.BOOLEAN, "NOT", fails) if kept else fails)
        self.stream, self._kept = stream, kept

    def summary(self, counters: Counters) -> tuple[str, int, int]:
        """Return the stream, the number of tuples that fit, and that of those that do not."""
        dropped = counters.tuples_in - counters.tuples_out
        fit, unfit = (counters.tuples_out, dropped) if self._kept else (dropped, counters.tuples_out)
        return self.stream, fit, unfit
