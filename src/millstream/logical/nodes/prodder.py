"""The prods of one query, injected into a stream that it reads.

It passes tuples on as they are. Prods are injected where the stream enters, before it is divided among shards: so they
have the same place among the tuples on every shard, and at any cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.algebra.response import Reach, Rule
from millstream.algebra.schedule import Schedule
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed
from millstream.logical.windows import spelled


@dataclass(frozen=True, slots=True)
class Prodder(Stateless, Passing):
    """`schedule`: when the query prods itself; `by`: the stream whose tuples prod it, or nothing."""

    stem = "prodder"
    passes_prods = True
    rules = (Rule("any column", Reach.EVERY, passes="the same"),)

    input: Plan
    schedule: Schedule | None
    by: str = ""

    def describe(self) -> str:
        parts, schedule, unit = [], self.schedule, self.input.schema.unit
        if schedule is not None and schedule.period:
            parts.append(f"EVERY {spelled(schedule.period, unit)}")
        elif schedule is not None and schedule.accuracy:
            parts.append(f"WITH ACCURACY {schedule.accuracy:g} %, now {spelled(schedule.lead, unit)} BEFORE END")
        elif schedule is not None:
            parts.append(f"{spelled(schedule.lead, unit)} BEFORE END")
        parts += ["BY SYSTEM TIME"] if schedule is not None and schedule.system else []
        parts += [f"PRODDED BY {self.by}"] if self.by else []
        return f"Prodder {' '.join(parts)}"

    def push(self, conditions: Conditions) -> Pushed:
        return Pushed(self, (conditions,))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(kept),)

    def parameters(self) -> dict[str, Any]:
        return self.values("schema")
