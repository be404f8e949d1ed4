"""Closing: a stream that another one closes, key by key, as `CLOSES` declares."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.algebra.schema import Schema, TimeKind
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class Closing(Plan):
    """`input` without the tuples that come after one of `closing` with their key; `keys` pairs columns of both. Each
    such tuple is a punctuation on the key. With `only_late` the late tuples alone. It processes in timestamp order if
    it `merges`, as it can if the time of both streams moves and is the same time; otherwise on arrival."""

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
