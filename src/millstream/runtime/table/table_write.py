"""The tuples of a writer on their way to its table, which runs the statement.

| | |
|---|---|
| computes | its tuples, unchanged |
| state | none |
| punctuation in → purged → out | any → nothing → its progress |
| cost | none |
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.program.program import Program
from millstream.algebra.schema import Schema
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS
from millstream.runtime.operator.registry import carries_out


@carries_out("table_write")
class TableWrite(Operator):
    def __init__(self, schema: Schema, table: str, program: Program) -> None:
        self.schema, self.table, self.program = schema, table, program

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        passed = (
            NO_PUNCTUATIONS if port.punctuations is None else NO_PUNCTUATIONS.with_progress(port.punctuations.progress)
        )
        return Output(port.rows, passed or None)
