"""Numbers the answers for each window and group of an aggregate: early rows, and the final one.

All answers for a window and group have the same keys, so the node runs where the aggregate does. Its counts belong to
one query, since another may be asked more often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.early import REVISION
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.types import Type
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.answering import Answering
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed


@dataclass(frozen=True, slots=True)
class Revise(Answering):
    """`keys`: the columns that name a window and group. `owner`: the query; empty while it is planned."""

    stem = "revise"
    rules = (
        Rule("windows and groups", Reach.EVERY, purges="their counts", passes="the same"),
        Rule("any other column", why="later answers would have other numbers"),
    )

    input: Plan
    keys: tuple[str, ...]
    owner: str = ""

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        return source.with_attributes((*source, Attribute(REVISION, Type.BIGINT)))

    def describe(self) -> str:
        return f"Revise BY {', '.join(self.keys)}"

    def owned(self, query: str, *, inner: bool) -> Plan:
        return replace(self, owner=query)

    def push(self, conditions: Conditions) -> Pushed:
        """Windows and groups that are dropped as a whole change no number."""
        below = tuple(c for c in conditions if c.columns() and c.columns() <= {*self.keys})
        return Pushed(self, (below,), tuple(c for c in conditions if c not in below))

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return ((0, column),) if column != REVISION else ()

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need((kept | {*self.keys}) - {REVISION}),)

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return (StatePart("answers", ("the final rows of the aggregate",)),)

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "keys", "owner", "timed")
