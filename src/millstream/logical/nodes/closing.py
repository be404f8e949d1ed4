"""Closing: a stream that another one closes, key by key, as `CLOSES` declares.

Whether a tuple is late does not depend on other tuples, so a condition is pushed into the closed stream. Every shard
reads the whole closing stream, however the closed stream is partitioned, so that all shards promise the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.punctuation.template import Template
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import Schema, TimeKind
from millstream.logical.contract.names import base_streams
from millstream.logical.contract.offers import Offer, Offers, distinct, slowest
from millstream.logical.contract.state_parts import StatePart, waiting
from millstream.logical.nodes.kinds.common import Passing
from millstream.logical.plan import EVERYWHERE, Conditions, Key, Names, Need, Plan, Pushed


@dataclass(frozen=True, slots=True)
class Closing(Passing):
    """`input` without the tuples that come after a tuple of `closing` with their key; `keys` pairs columns of both.
    Each tuple of `closing` is a punctuation on its key. With `only_late` it emits just the late tuples. It processes in
    timestamp order if it `merges`, which needs time in the same unit that moves on both streams; otherwise on
    arrival."""

    stem = "closing"
    rules = (Rule("any column", Reach.SOME, passes="the same, to the stream that is closed"),)
    stateless = False
    positional = False

    input: Plan
    closing: Plan
    keys: tuple[tuple[str, str], ...]
    merges: bool = False
    only_late: bool = False

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        if self.only_late:
            return Schema(source.attributes, TimeKind.LATENT)
        return replace(source, ordered=self.merges or source.ordered)

    @property
    def contributing(self) -> tuple[Plan, ...]:
        return (self.input,)

    def describe(self) -> str:
        late = " late" if self.only_late else ""
        keys = " AND ".join(f"{a} = {b}" for a, b in self.keys)
        return f"Closing{late} {keys} {'merging' if self.merges else 'on arrival'}"

    def push(self, conditions: Conditions) -> Pushed:
        return Pushed(self, (conditions, ()))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        own, by = zip(*self.keys, strict=True)
        return self, (Need(kept | {*own}), Need(frozenset(by), exact=True))

    @property
    def punctuates(self) -> Names:
        return frozenset(own for own, _ in self.keys)

    def hash_keys(self) -> Iterable[Key]:
        return [tuple(own for own, _ in self.keys)]

    def keys_below(self, key: Key) -> list[Key] | None:
        return None if self.only_late else [key, EVERYWHERE]

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return (waiting(self, inputs),) if self.merges else ()

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        time, clocks = slowest(inputs if self.merges else inputs[:1])
        if self.only_late:
            return Offers(time, clocks)
        columns = ", ".join(own for own, _ in self.keys)
        origin = f"{base_streams(self.closing)[0]} CLOSES {base_streams(self.input)[0]} ({columns})"
        closed = Offer(Template(tuple((own, "#") for own, _ in self.keys)), origin)
        return Offers(time, clocks, distinct((*inputs[0].templates, closed)), inputs[0].references)

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "keys", "merges", "only_late")
