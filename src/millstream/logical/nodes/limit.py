"""The first tuples of a stream: LIMIT.

It counts on one shard; its inputs run on many. No condition moves below it, and feedback from above is not passed on:
both would let other tuples through. When the count is reached it disclaims everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from millstream.algebra.response import Rule
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.common import Passing
from millstream.logical.plan import Key, Names, Need, Plan


@dataclass(frozen=True, slots=True)
class Limit(Passing):
    """The first `count` tuples of `input`."""

    stem = "limit"
    finite = True
    rules = (Rule("any column", why="another tuple would be among the first"),)
    stateless = False
    positional = False
    punctuates = Names()

    input: Plan
    count: int

    @property
    def empty(self) -> bool:
        return not self.count

    def describe(self) -> str:
        return f"Limit {self.count}"

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(kept),)

    def hash_keys(self) -> Iterable[Key]:
        return ()

    def keys_below(self, key: Key) -> list[Key] | None:
        return None

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return ()

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "count")
