"""Sequences: a tuple of one stream paired with an earlier tuple of another.

It holds tuples of the first stream. RECENT without keys holds one tuple. Otherwise a template of the second stream over
keys bounds them, and for RECENT so do keys with finitely many values.

A condition on keys alone is pushed into both streams, because each key value is a sequence of its own. Any other
condition of the sequence is pushed into the second stream, and for CHRONICLE into the first (for RECENT a tuple dropped
by it would no longer replace an older one). A condition from above is pushed into the second stream for RECENT. For
CHRONICLE, and for RECENT with KEY JOIN (`once`), it stays above: a pair consumes its tuples whether or not it satisfies
the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.expression import Expression, conjuncts
from millstream.algebra.names import key_names, prefixed
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Schema
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.requirements import Punctuated, Requirement
from millstream.logical.contract.state_parts import WAITING, StatePart, finite, may_be_nan, unclosed, waiting
from millstream.logical.nodes.kinds.joining import Paired, Side, joined
from millstream.logical.plan import Conditions, Key, Plan, Pushed, subsets


@dataclass(frozen=True, slots=True)
class Sequence(Paired):
    """`second` paired with an earlier `first`: RECENT (the latest) or CHRONICLE (the earliest unused)."""

    stem = "sequence"
    rules = (
        Rule("keys", Reach.EVERY, passes="the same, by key", relays=False),
        Rule("columns of the second input, which takes the latest first", Reach.SOME, passes="the same, to that input"),
        Rule("any other column", why="without a tuple, another would take its place in a pair"),
    )
    positional = True
    merges = True

    first: Plan
    second: Plan
    mode: str
    keys: tuple[tuple[str, str], ...] = ()
    residual: Expression | None = None
    first_prefix: str | None = None
    second_prefix: str | None = None
    once: bool = False
    """With RECENT: true if a tuple of the first stream is in one pair at most. With CHRONICLE it always is."""

    @property
    def sides(self) -> tuple[Side, Side]:
        return (
            Side(self.first, self.first.schema, self.first_prefix, self.keys_of(0)),
            Side(self.second, self.second.schema, self.second_prefix, self.keys_of(1)),
        )

    @property
    def schema(self) -> Schema:
        sides = self.sides
        second = sides[1].schema
        time = None if second.time is None else prefixed(second.time, self.second_prefix)
        offsets = tuple((prefixed(name, self.second_prefix), offset) for name, offset in second.offsets)
        return replace(second, attributes=joined(sides), time=time, ordered=True, follows=(), offsets=offsets)

    @property
    def timed_by(self) -> tuple[Plan, ...]:
        return (self.second,)

    def describe(self) -> str:
        return f"Sequence {self.mode}{self._on()}{self._where()}{' once' if self.once else ''}"

    def push(self, conditions: Conditions) -> Pushed:
        first, second = sifters = self.sifters(self.equal)
        keys = {name for names in self.equal for name in names}
        chronicle = self.mode == "CHRONICLE"

        def take(condition: Expression, into_first: bool, into_second: bool) -> bool:
            if condition.columns() and condition.columns() <= keys:
                return first.take(condition) and second.take(condition)
            return (into_second and second.take(condition)) or (into_first and first.take(condition))

        inside = [c for c in conjuncts(self.residual) if not take(c, chronicle, True)]
        above = [c for c in conditions if not take(c, False, not chronicle and not self.once)]
        return self.sifted(sifters, inside, above)

    def hash_keys(self) -> Iterable[Key]:
        return subsets(list(self.sides[1].key_names))

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return self._held(inputs[1]), waiting(self, inputs)

    def _held(self, second: Offers) -> StatePart:
        name = f"first {self.sides[0].label}"
        if self.mode == "RECENT" and not self.keys:
            return StatePart(name, ("keeping one tuple",), rows=1)
        names = key_names((b, a) for a, b in self.keys)
        usable = [o for o in second.templates if not o.seen and o.attributes <= names.keys()]
        closing = [o.origin for o in usable if not may_be_nan(self.first.schema, (names[a] for a in o.attributes))]
        if closing:
            return StatePart(name, tuple(dict.fromkeys(closing)))
        if self.mode == "RECENT" and finite(self.first.schema, self.keys_of(0)):
            return StatePart(name, ("keys that have finitely many values",), purged=False)
        return StatePart(name, lacks=unclosed(self.sides[1].label, self.keys_of(1), second))

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return self.joined_offers(inputs, [parts[0].drains, True])

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        yield Punctuated(self.second, self.keys_of(1))

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        if self.mode == "CHRONICLE" and not self.keys and part.name != WAITING:
            return ["add an equality on a column that its second stream closes", "use MODE RECENT"]
        return []

    def parameters(self) -> dict[str, Any]:
        schemas = {"first": self.first.schema, "second": self.second.schema}
        return schemas | self.values("mode", "schema", "keys", "residual", "once")
