"""LIMIT: the first tuples of a stream, then its end.

| | |
|---|---|
| computes | the first `count` tuples |
| order | its input's |
| state | the number of tuples that are still to come |
| punctuation in → purged → out | p → nothing → p; behind the last tuple: a punctuation that excludes all tuples |
| feedback | `~[*]`, everything, to its input, behind the last tuple |
| cost | none |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, Schema
from millstream.runtime.operator.contract import NOTHING, Input, Operator, Output
from millstream.runtime.operator.registry import carries_out

ENDED = Punctuations.of([Pattern()]).with_progress(FOREVER)


@carries_out("limit")
class Limit(Operator):
    def __init__(self, schema: Schema, count: int) -> None:
        self.schema = schema
        self._left = count
        self._ended = False

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        if self._ended:
            return NOTHING
        rows = port.rows
        if rows is not None:
            rows = rows.head(self._left)
            self._left -= rows.height
        if self._left:
            return Output(rows, port.punctuations)
        self._ended = True
        return Output(rows, ENDED, upstream=((0, Feedback(Intent.ASSUMED, Pattern())),))

    def output_bound(self, bounds: Sequence[int]) -> int:
        return FOREVER if self._ended else min(bounds)

    def scalars(self) -> dict[str, Any]:
        return {"left": self._left, "ended": self._ended}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._left, self._ended = values["left"], values["ended"]
