"""Duplicate elimination.

It holds the tuples seen. Any template bounds them; so does time, if a column follows it; so do columns with finitely
many values. A condition is pushed below unless it reads the hidden timestamp, which is that of the first tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import TS
from millstream.logical.contract.offers import Offers, Time
from millstream.logical.contract.requirements import Punctuated, Requirement
from millstream.logical.contract.state_parts import StatePart, finite, listed
from millstream.logical.nodes.kinds.common import Passing
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed


@dataclass(frozen=True, slots=True)
class Distinct(Passing):
    stem = "distinct"
    rules = (Rule("any column", Reach.EVERY, purges="tuples that match", passes="the same"),)
    stateless = False
    positional = False
    punctuates = frozenset()

    input: Plan

    def describe(self) -> str:
        return "Distinct"

    def push(self, conditions: Conditions) -> Pushed:
        below = tuple(c for c in conditions if TS not in c.columns())
        return Pushed(self, (below,), tuple(c for c in conditions if c not in below))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(frozenset(self.schema.names), exact=True),)

    def reads_punctuation(self, place: int, columns: Names) -> bool:
        return not columns <= self.schema.times.keys()

    def hash_keys(self) -> Iterable[Key]:
        return [(name,) for name in self.schema.names]

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key]

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        (source,) = inputs
        bounds = [" and ".join(source.clocks)] if self.schema.trails and source.time is Time.MOVES else []
        bounds += [offer.origin for offer in source.templates]
        if bounds:
            return (StatePart("seen", tuple(dict.fromkeys(bounds))),)
        if finite(self.schema, self.schema.names):
            return (StatePart("seen", ("columns that have finitely many values",), purged=False),)
        return (StatePart("seen", lacks=f"no punctuation closes {listed(self.schema.names)}"),)

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        yield Punctuated(self.input, self.schema.names)

    def parameters(self) -> dict[str, Any]:
        return self.values("schema")
