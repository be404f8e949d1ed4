"""A chain of selections and projections as one step.

| | |
|---|---|
| computes | what its stages compute one after the other |
| state | that of its stages (none but the punctuation already put out) |
| punctuation in → purged → out | through the stages in order → nothing → what the last stage lets out |
| cost | one pass over the page: Polars sees the whole chain, reads each column once and filters before it computes |

Stages are the operators themselves, so a pipeline has no semantics of its own. The planner makes one of a projection over
a selection, where handing a page from operator to operator would cost more than the work on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.runtime.operator import NOTHING, Input, Operator, Output
from millstream.runtime.project import Project
from millstream.runtime.select import Select

EAGER = pl.QueryOptFlags.none()
"""The chain is already in its best order; looking for a better one costs more than a page takes."""


class Pipeline(Operator):
    def __init__(self, stages: Sequence[Select | Project]) -> None:
        self.stages = tuple(stages)
        self.schema = stages[-1].schema

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows, punctuations = port.rows, port.punctuations
        if rows is not None:
            chain = rows.lazy()
            for stage in self.stages:
                chain = stage.lazily(chain)
            rows = chain.collect(optimizations=EAGER)
            rows = rows if rows.height else None
        if punctuations is not None:
            for stage in self.stages:
                punctuations = stage.pass_on(punctuations)
        if rows is None and not punctuations:
            return NOTHING
        return Output(rows, punctuations or None)

    def scalars(self) -> dict[str, Any]:
        return {str(place): stage.scalars() for place, stage in enumerate(self.stages)}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        for place, stage in enumerate(self.stages):
            stage.restore_scalars(values[str(place)])
