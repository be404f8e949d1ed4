"""A writer of a table: a statement that runs for each tuple of its input. It is the top of a query without results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.algebra.program.program import Program
from millstream.algebra.program.statement import Insert
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import WAITING, StatePart, finite, waiting
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Names, Need, Plan


@dataclass(frozen=True, slots=True)
class TableWrite(Passing, Stateless):
    """`program` takes the columns of a tuple. It is compiled, and shares the rows with the other writers."""

    stem = "table_write"

    input: Plan
    target: WrittenTable
    program: Program

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> TableWrite:
        return self.altered(input=inputs[0])

    @property
    def table(self) -> str:
        return self.target.table

    def describe(self) -> str:
        return f"TableWrite {'; '.join(map(str, self.program.iterate))}"

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(frozenset(argument.name for argument in self.program.arguments)),)

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return (waiting(self, inputs), *self._rows())

    def _rows(self) -> tuple[StatePart, ...]:
        """The rows that it inserts, which stay until a statement deletes them."""
        table = self.target
        if not any(isinstance(each, Insert) and each.table == table.table for each in self.program.iterate):
            return ()
        if table.key and finite(table.table_schema, table.key):
            return (StatePart("rows", ("a key that has finitely many values",), purged=False),)
        return (StatePart("rows", lacks=f"a row of {table.table} stays until a DELETE removes it"),)

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        return [] if part.name == WAITING else [f"delete old rows: DELETE FROM {self.table} USING … WHERE …"]

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "table", "program")
