"""The end of one stage of a query: its rows leave for the shards of the next stage.

| | |
|---|---|
| computes | its input, unchanged |
| order | its input's |
| state | the progress sent |
| punctuation in → purged → out | p → nothing → p |
| progress | the input's, in band, even if it arrived over an arc |
| cost | none |

Readers in the next stage learn the time only from what is sent, so every advance is sent. When one of them requests
time, the exchange counts as waiting until nothing moves, and so requests time from the sources before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.early import Prod
from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, Schema
from millstream.algebra.upstream import Answer, TimeRequest, Upstream
from millstream.runtime.operator.capabilities import AnswersMessages, AnswersProds, AwaitsTime, KeepsPosition, RowWise
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import carries_out


@carries_out("exchange")
class Exchange(Operator, RowWise, KeepsPosition, AnswersProds, AnswersMessages, AwaitsTime):
    timed = True

    def __init__(self, schema: Schema, early: bool = False) -> None:
        self.schema, self.answers = schema, early
        self._requested = False
        self._sent = NEVER

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        punctuations = port.punctuations
        if port.bound > self._sent:
            self._sent = port.bound
            punctuations = (punctuations or Punctuations.of(())).with_progress(port.bound)
        return Output(port.rows, punctuations)

    def meet(self, port: int, element: Element) -> Output:  # noqa: ARG002
        return Output(elements=(element,))

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:  # noqa: ARG002
        return rows[0]

    def answer(self, message: Upstream) -> Answer:
        if not isinstance(message, TimeRequest):
            return message.unanswered(self.arity)
        self._requested = True
        return Answer(then=self._stop_waiting)

    def _stop_waiting(self) -> None:
        self._requested = False

    def waiting(self) -> bool:
        return self._requested

    def scalars(self) -> dict[str, Any]:
        return {"told": self._sent}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._sent = values["told"]
