"""Plan node before an operator that may read punctuation which shards emit at different times, and no stage is cut.

    WindowAggregate BY a.k, b.v        closes groups by punctuation on b.v, which b does not declare
    └─ Consensus                       passes it on when all shards have received it
       └─ WindowJoin a.k = b.k         holds it back while it stores tuples of b that match

A stage is cut for declared punctuation (`held_punctuation`): it is expected. Punctuation that is not declared, or the
end of one of the joined streams, waits here for the driver to tell that all shards have received it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.algebra.response import Reach, Rule
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.plan import Conditions, Key, Plan, Pushed
from millstream.physical.plan.held_punctuation import expected, holds, reads_any


@dataclass(frozen=True, slots=True)
class Consensus(Stateless, Passing):
    """`passing`: sets of columns of punctuation that need not wait. `key`: the columns that the input is hashed on,
    each with those that equal it."""

    stem = "consensus"
    page = "exchange"
    rules = (Rule("any column", Reach.EVERY, passes="the same"),)

    input: Plan
    passing: tuple[tuple[str, ...], ...]
    key: tuple[tuple[str, ...], ...]

    def describe(self) -> str:
        return "Consensus"

    def push(self, conditions: Conditions) -> Pushed:
        return Pushed(self, (conditions,))

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "passing", "key")


def agreed(plan: Plan, place: int, part: Plan, key: Key) -> Plan:
    """Return `part`, which replaces an input of a node and is hashed on `key`, with a consensus if the node may read
    punctuation that its shards hold back."""
    if not holds(part) or not reads_any(plan, place):
        return part
    equal = [next((group for group in part.equal_columns if name in group), (name,)) for name in key]
    passing = sorted(tuple(sorted(columns)) for columns in expected(plan.inputs[place], key))
    return Consensus(part, tuple(passing), tuple(tuple(sorted(names)) for names in equal))
