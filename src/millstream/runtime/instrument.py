"""INSTRUMENT: passes a stream through, and sends feedback to its producer.

| | |
|---|---|
| computes | its input; with assumed feedback, without what it has disclaimed |
| state | the number of tuples since the last message |
| punctuation in → purged → out | p → nothing → p |
| feedback | the message after every `every` tuples; at the start without `every` |
| cost | none |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.runtime.operator.capabilities import RowWise
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.registry import carries_out


@carries_out("instrument")
class Instrument(Operator, RowWise):
    """`stands`: the engine has sent the message when it added the operator."""

    def __init__(
        self, schema: Schema, intent: str, pattern: Pattern, every: int | None, sends: bool, stands: bool
    ) -> None:
        self.schema = schema
        self._message = Feedback(Intent(intent), pattern)
        self._every, self._sends, self._stands = every, sends and not stands, stands
        self._count = 0

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        rows, count = port.rows, 0
        if rows is not None:
            before, self._count = self._count, self._count + rows.height
            count = int(not before) if self._every is None else self._count // self._every
            self._count = self._count if self._every is None else self._count % self._every
            if self._stands:
                rows = where(rows, ~self._message.pattern.match(rows))
        messages = ((0, self._message),) * count if self._sends else ()
        return Output(rows, port.punctuations, upstream=messages)

    def scalars(self) -> dict[str, Any]:
        return {"count": self._count}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._count = values["count"]
