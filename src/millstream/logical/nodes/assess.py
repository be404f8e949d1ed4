"""Compares early answers with final ones, for the running accuracy of a query, and predicts the final ones.

It speaks of one aggregate: the first one in the select list. Pairs of early and final values are kept by group, so the
node runs where all windows of a group are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.early import ESTIMATES
from millstream.algebra.expression import Expression
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.types import Type
from millstream.algebra.windower import Windower
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.answering import Answering
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed


@dataclass(frozen=True, slots=True)
class Assess(Answering):
    """`keys`: the columns that name a window and group. `value`: the aggregate; `kind`: how its final value is
    predicted; `moments`: number and standard deviation of its values, if it needs them. `estimates`: its output has the
    columns of the prediction. `quality`: how good an early value was, of the columns `PAIR`; None: its accuracy.
    `owner`: the query; empty while it is planned. `inner`: the answers are those of a subquery."""

    stem = "assess"
    rules = (
        Rule("groups; without estimates any column", Reach.EVERY, purges="their early values", passes="the same"),
        Rule("any other column", why="later answers would be predicted otherwise"),
    )

    input: Plan
    keys: tuple[str, ...]
    value: str
    kind: str
    windows: Windower
    moments: tuple[str, ...] = ()
    estimates: bool = False
    quality: Expression | None = None
    owner: str = ""
    inner: bool = False

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        made = tuple(Attribute(name, Type.DOUBLE) for name in ESTIMATES) if self.estimates else ()
        return source.with_attributes((*source, *made))

    def describe(self) -> str:
        by = f" BY {', '.join(self.together)}" if self.together else ""
        return f"Assess {self.value}{by}{' with estimates' if self.estimates else ''}"

    def owned(self, query: str, *, inner: bool) -> Plan:
        return replace(self, owner=query, inner=inner)

    def push(self, conditions: Conditions) -> Pushed:
        """Groups that are dropped as a whole change no prediction. Other rows would be missing in the history; without
        one, only rows that are read are compared."""
        if not self.estimates:
            return Pushed(self, (conditions,))
        below = tuple(c for c in conditions if c.columns() and c.columns() <= {*self.together})
        return Pushed(self, (below,), tuple(c for c in conditions if c not in below))

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return ((0, column),) if not (self.estimates and column in ESTIMATES) else ()

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        made = replace(self, estimates=self.estimates and not kept.isdisjoint(ESTIMATES))
        made = made if made.estimates else replace(made, moments=())
        read = {*self.keys, self.value, *made.moments}
        return made, (Need((kept - {*ESTIMATES} if self.estimates else kept) | read),)

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        early = StatePart("answers", ("the final rows of the aggregate",))
        history = StatePart(
            "history", ("the last answers of each group",), purged=False, length=2000 * self.windows.step
        )
        return (early, history) if self.estimates else (early,)

    def parameters(self) -> dict[str, Any]:
        known = "schema", "keys", "value", "kind", "windows", "moments", "estimates", "quality", "owner", "inner"
        return self.values(*known, "timed")
