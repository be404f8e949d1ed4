"""A writer of a table: a statement that runs for each tuple of its input. It is the top of a query without results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.program.program import Program
from millstream.algebra.program.statement import RETURN, Insert, Statement, Update
from millstream.algebra.response import Rule
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import WAITING, StatePart, waiting
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Key, Names, Need, Plan


@dataclass(frozen=True, slots=True)
class TableWrite(Passing, Stateless):
    """`program` takes the columns of a tuple. It is compiled, and shares the rows with the other writers."""

    stem = "table_write"
    silent = True
    rules = (Rule("any column", why="the table keeps all rows"),)

    input: Plan
    target: WrittenTable
    program: Program
    routed: Key = ()
    """The columns of the input that the key of a row is equal to, if the statement changes no other rows."""

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> TableWrite:
        return self.altered(input=inputs[0])

    @property
    def stateless(self) -> bool:  # type: ignore[override]
        return not self.target.partitioned

    def hash_keys(self) -> Iterable[Key]:
        return [self.routed] if self.routed else ()

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key] if key == self.routed else None

    @property
    def table(self) -> str:
        return self.target.table

    @property
    def writes(self) -> str:
        return self.table

    def describe(self) -> str:
        return f"TableWrite {'; '.join(map(self._described, self.program.iterate))}"

    def _described(self, statement: Statement) -> str:
        """The statement as text, with the names of columns."""
        if isinstance(statement, Insert) and statement.table == RETURN:
            return "refuse rows that do not fit"
        if not isinstance(statement, Update):
            return str(statement)
        names = self.target.table_schema.names
        values = ", ".join(f"{names[position]} = {value}" for position, value in statement.assignments)
        condition = "" if statement.condition is None else f" WHERE {statement.condition}"
        return f"UPDATE {self.table} SET {values}{condition}"

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(frozenset(argument.name for argument in self.program.arguments)),)

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return (waiting(self, inputs), *self._rows())

    def _rows(self) -> tuple[StatePart, ...]:
        """The rows that it inserts, which stay until a statement deletes them."""
        table = self.target
        if not any(isinstance(each, Insert) and each.table == table.table for each in self.program.iterate):
            return ()
        return (replace(table.rows(), side=0),)

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        return [] if part.name == WAITING else self.target.advice(part, ())

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "table", "program")
