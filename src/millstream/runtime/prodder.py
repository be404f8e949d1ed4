"""The place of a query's own prods in its plan.

| | |
|---|---|
| computes | its input, unchanged |
| order | its input's |
| state | none |
| punctuation in → purged → out | p → nothing → p |
| prods | pass; those of the query have been injected where the stream enters |
| cost | none |
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.schema import Schema
from millstream.runtime.operator.capabilities import HoldsNothing
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import carries_out


@carries_out("prodder")
class Prodder(Operator, HoldsNothing):
    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        return Output(port.rows, port.punctuations or None)
