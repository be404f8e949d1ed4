"""Selection: the tuples that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.expression import Expression
from millstream.algebra.response import Reach, Rule
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed, columns_read


@dataclass(frozen=True, slots=True)
class Select(Stateless, Passing):
    stem = "select"
    forgets = True
    passes_prods = True
    passes_answers = True
    rules = (Rule("any column", Reach.EVERY, passes="the same"),)

    input: Plan
    predicate: Expression

    def describe(self) -> str:
        return f"Select {self.predicate}"

    def canonical(self, spelled: Callable[[Expression], Expression]) -> Plan:
        return replace(self, predicate=spelled(self.predicate))

    def push(self, conditions: Conditions) -> Pushed:
        return Pushed(self, (conditions,))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(kept | columns_read(self.predicate)),)

    def parameters(self) -> dict[str, Any]:
        return {"schema": self.schema, "predicate_": self.predicate}
