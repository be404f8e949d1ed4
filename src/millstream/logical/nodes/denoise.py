"""Readings without noise: tuples whose key repeats often enough in some window that holds them.

A key is noise or not by its own tuples alone, so a condition on key columns is pushed below.

| mode | a tuple is emitted | order |
|---|---|---|
| EAGER | once every tuple before it is known to be noise or not | of time |
| LAZY | once no window that holds it can still grow | of time |
| UNORDERED | once it is known not to be noise | any |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Schema
from millstream.logical.contract.offers import Offers, Time
from millstream.logical.contract.requirements import Requirement, TimeMoves
from millstream.logical.contract.state_parts import StatePart, stream_names, time_stands, waiting
from millstream.logical.nodes.kinds.common import Passing
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed, subsets
from millstream.logical.windows import spelled


@dataclass(frozen=True, slots=True)
class Denoise(Passing):
    """The tuples of `input` that lie in a window of length `range`, both ends included and ending at a tuple of the
    same key, that has at least `threshold` tuples of the key. `mode` is EAGER, LAZY or UNORDERED."""

    stem = "denoise"
    rules = (
        Rule("keys", Reach.EVERY, passes="the same"),
        Rule("any other column", why="every tuple counts for its key"),
    )
    stateless = False
    positional = False
    holds_time = True
    holds_punctuation = True
    punctuates = Names()

    input: Plan
    key: tuple[str, ...]
    range: int
    threshold: int
    mode: str = "EAGER"

    @property
    def schema(self) -> Schema:
        return replace(self.input.schema, ordered=self.mode != "UNORDERED")

    @property
    def merges(self) -> bool:
        """True if tuples have to be put into the order of time first."""
        return not self.input.schema.ordered

    def describe(self) -> str:
        window = f"RANGE {spelled(self.range, self.input.schema.unit)}"
        return f"Denoise BY {', '.join(self.key)} [{window}] {self.threshold} {self.mode}"

    def push(self, conditions: Conditions) -> Pushed:
        below = tuple(c for c in conditions if c.columns() and c.columns() <= {*self.key})
        return Pushed(self, (below,), tuple(c for c in conditions if c not in below))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(kept | {*self.key}, stored=True),)

    @property
    def by_key(self) -> bool:
        """True if a tuple is emitted when its own key, or time, allows it. With EAGER it also waits for the tuples of
        other keys before it: on several shards it would wait for fewer of them."""
        return self.mode != "EAGER"

    def hash_keys(self) -> Iterable[Key]:
        return subsets(list(self.key)) if self.by_key else ()

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key] if self.by_key and {*key} <= {*self.key} else None

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        (source,) = inputs
        if source.time is Time.STILL:
            window = StatePart("window", lacks=time_stands(stream_names(self), source.time))
        else:
            window = StatePart("window", (" and ".join(source.clocks),), length=2 * self.range)
        return (window, waiting(self, inputs)) if self.merges else (window,)

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return inputs[0] if all(part.drains for part in parts) else replace(inputs[0], templates=())

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        yield TimeMoves((self.input,))

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "key", "range", "threshold", "mode", "merges")
