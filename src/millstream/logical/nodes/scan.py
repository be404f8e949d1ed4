"""Scan: all tuples of a stream, under its own column names, with the punctuation that its declaration promises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import Schema
from millstream.algebra.stream_id import StreamId
from millstream.logical.nodes.kinds.common import Leaf
from millstream.logical.plan import Key


@dataclass(frozen=True, slots=True)
class Scan(Leaf):
    stem = "scan"
    forgets = True
    passes_prods = True
    page = "source"

    stream: str
    stream_schema: Schema
    templates: tuple[Template, ...] = field(default=(), compare=False)
    """The punctuation that its declaration promises; it is no part of its identity."""

    @property
    def schema(self) -> Schema:
        return self.stream_schema

    @property
    def id(self) -> StreamId:
        return StreamId.of(self.stream)

    def describe(self) -> str:
        return f"Scan {self.stream}"

    def hash_keys(self) -> Iterable[Key]:
        return [self.schema.names[:1]]
