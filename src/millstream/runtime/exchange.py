"""The end of one stage of a query, where its rows leave for the shards of the next.

| | |
|---|---|
| computes | its input, unchanged |
| order | its input's |
| state | how far time was told |
| punctuation in → purged → out | p → nothing → p |
| progress | the input's, in band, whichever way it came here |
| cost | none |

Readers elsewhere learn the time from what is sent alone, so every advance is sent. When one of them requests time, the
exchange counts as waiting until nothing moves, and so requests it from the sources before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, Schema
from millstream.algebra.upstream import Answer, TimeRequest, Upstream
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import carries_out


@carries_out("exchange")
class Exchange(Operator):
    timed = True

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._requested = False
        self._told = NEVER

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        told = port.punctuations
        if port.bound > self._told:
            self._told = port.bound
            told = Punctuations.of((), progress=port.bound) if told is None else told.with_progress(port.bound)
        return Output(port.rows, told)

    def meet(self, port: int, element: Element) -> Output:  # noqa: ARG002
        return Output(elements=(element,))

    def answer(self, message: Upstream) -> Answer:
        if not isinstance(message, TimeRequest):
            return super().answer(message)
        self._requested = True
        return Answer(then=self._rest)

    def _rest(self) -> None:
        self._requested = False

    def waiting(self) -> bool:
        return self._requested

    def scalars(self) -> dict[str, Any]:
        return {"told": self._told}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._told = values["told"]
