"""A stream joined with a table that streams write: a tuple sees the writes before it in time, and those of its time.

It holds a copy of the table as of the time that it has reached. With a copy of its own, a query waits for the writers
alone and not for other readers, and a query that fails takes nothing with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.algebra.names import prefixed
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import WAITING, StatePart, waiting
from millstream.logical.nodes.table_join import TableJoin
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed


@dataclass(frozen=True, slots=True)
class WrittenJoin(TableJoin):
    stem = "written_join"
    merges = True
    stateless = False
    positional = True

    changes: WrittenTable = field(kw_only=True)
    looks_up = ""

    @property
    def contributing(self) -> tuple[Plan, ...]:
        return (self.input,)

    @property
    def schema(self) -> Schema:
        return replace(self.joined_schema(), ordered=True)

    def describe(self) -> str:
        return f"WrittenJoin {self.table}{' outer' if self.outer else ''}{self._on()}{self._where()}"

    def push(self, conditions: Conditions) -> Pushed:
        pushed = TableJoin.push(self, conditions)
        return replace(pushed, below=(*pushed.below, ()))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        node, needs = TableJoin.pruned(self, kept)
        return node, (*needs, Need(frozenset(self.changes.schema.names)))

    def hash_keys(self) -> Iterable[Key]:
        found = self._routed()
        return [tuple(prefixed(name, self.stream_prefix) for name in found)] if found else ()

    def keys_below(self, key: Key) -> list[Key] | None:
        return [self._routed(), self.changes.key] if key in self.hash_keys() else None

    def _routed(self) -> Key:
        """The columns of the stream that equal the key of the table; none if a tuple may meet rows of other keys."""
        own, table = self.input.schema, self.table_schema
        pairs = {other: name for name, other in self.keys if alike(own.type_of(name), table.type_of(other))}
        return tuple(pairs[name] for name in self.changes.key) if pairs.keys() >= {*self.changes.key} else ()

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return self.changes.rows(), waiting(self, inputs)

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return inputs[0].renamed(self.sides[0].names)

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        return [] if part.name == WAITING else self.changes.advice(part, ())

    def parameters(self) -> dict[str, Any]:
        shared = self.values("table_schema", "schema", "keys", "residual", "outer")
        return {"input_schema": self.input.schema, "changes": self.changes.schema, "name": self.table} | shared


def alike(one: Type, other: Type) -> bool:
    """True if equal values of both types are hashed alike."""
    return one is other or (one.is_integer and other.is_integer)
