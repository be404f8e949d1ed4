"""The end of one stage of a query, where its rows leave for the shards of the next.

| | |
|---|---|
| computes | its input, unchanged |
| order | its input's |
| state | how far time was told |
| punctuation in → purged → out | p → nothing → p |
| progress | the input's, in band, whichever way it came here |
| cost | none |

Readers elsewhere learn the time from what is sent alone, so every advance is sent. While it is `listening` it counts as
waiting: it asks for time, since somebody who reads it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.algebra.punctuation import Punctuations
from millstream.algebra.schema import NEVER, Schema
from millstream.runtime.operator import Input, Operator, Output
from millstream.runtime.registry import carries_out


@carries_out("exchange")
class Exchange(Operator):
    timed = True

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.listening = False
        self._told = NEVER

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        told = port.punctuations
        if port.bound > self._told:
            self._told = port.bound
            told = Punctuations.of((), progress=port.bound) if told is None else told.with_progress(port.bound)
        return Output(port.rows, told)

    def waiting(self) -> bool:
        return self.listening

    def scalars(self) -> dict[str, Any]:
        return {"told": self._told}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._told = values["told"]
