"""Plan nodes where a query is cut into stages: one sends rows to other shards, one reads them there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Schema, TimeKind
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.nodes.union import Merging
from millstream.logical.plan import Conditions, Plan, Pushed


@dataclass(frozen=True, slots=True)
class Exchange(Stateless, Passing):
    """The top of a query part that another stage reads."""

    stem = "exchange"
    rules = (Rule("any column", Reach.EVERY, passes="the same"),)

    input: Plan
    early: bool = False
    """True if the query answers prods."""

    def describe(self) -> str:
        return "Exchange early" if self.early else "Exchange"

    def push(self, conditions: Conditions) -> Pushed:
        return Pushed(self, (conditions,))

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "early")


@dataclass(frozen=True, slots=True)
class Gather(Merging):
    """The union of the parts of one stream that several shards send, in the order of time if each part is."""

    stem = "gather"
    page = "exchange"

    @property
    def schema(self) -> Schema:
        return self.members[0].schema

    @property
    def merges(self) -> bool:
        return self.schema.ordered and self.schema.kind is not TimeKind.LATENT
