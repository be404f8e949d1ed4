"""A table that streams write: the changes of its rows, in the order of time.

A change has the number of a row, whether the row is in the table from then on, and its values. The plan names the table
alone: the writers are queries of their own, which come and go while the table stays. All readers in a shard read one
operator, whenever they were added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from millstream.algebra.response import Rule
from millstream.algebra.schema import Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.written import ALIVE, ROW
from millstream.logical.contract.offers import Offers, Time
from millstream.logical.contract.state_parts import StatePart, finite
from millstream.logical.plan import Key, Names, Plan


@dataclass(frozen=True, slots=True)
class WrittenTable(Plan):
    stem = "written_table"
    common = True
    silent = True
    rules = (Rule("any column", why="the table keeps all rows"),)
    stateless = False
    positional = True
    holds_time = False
    holds_punctuation = False
    punctuates = Names()
    equal_columns = ()

    table: str
    table_schema: Schema
    key: tuple[str, ...] = ()
    unit: int = 1
    number: int = 0
    """Differs from those of dropped tables of the same name."""
    partitioned: bool = False
    """True if each shard has the rows of its keys."""
    removed: tuple[str, ...] = ()
    """For contracts: the DELETEs that remove each row sooner or later (`contract.removal`)."""
    partly: tuple[str, ...] = ()
    """For contracts: the queries that delete rows, but perhaps not all."""

    @property
    def schema(self) -> Schema:
        hidden = Attribute(ROW, Type.BIGINT), Attribute(ALIVE, Type.BOOLEAN)
        attributes = (*hidden, *self.table_schema.attributes)
        return Schema(attributes, TimeKind.EXTERNAL, unit=self.unit, ordered=True, moves=True)

    @property
    def keeps(self) -> str:
        return self.table

    def describe(self) -> str:
        by = f" BY ({', '.join(self.key)})" if self.partitioned else ""
        return f"WrittenTable {self.table}{by}"

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return ()

    def hash_keys(self) -> Iterable[Key]:
        return ()

    def keys_below(self, key: Key) -> list[Key] | None:
        return [] if self.partitioned and key == self.key else None

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return (self.rows(),)

    def rows(self) -> StatePart:
        """The rows of the table, which stay until a statement deletes them."""
        if self.key and finite(self.table_schema, self.key):
            return StatePart("rows", ("a key that has finitely many values",), purged=False)
        if self.removed:
            return StatePart("rows", self.removed, side=1)
        others = f", and {' and '.join(self.partly)} need not remove every row" if self.partly else ""
        return StatePart("rows", lacks=f"a row of {self.table} stays until a DELETE removes it{others}", side=1)

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        delete = f"start DELETE FROM {self.table} USING stream WHERE {self.table}.column < stream.time first"
        return [f"{delete}, with a column that is NOT NULL and a stream in the order of time"]

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return Offers(Time.MOVES, (f"the writers of {self.table}",))

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "table", "table_schema")
