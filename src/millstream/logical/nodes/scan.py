"""Scan: all tuples of a stream, under the stream's own column names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.algebra.schema import Schema
from millstream.logical.nodes.leaf import Leaf
from millstream.logical.plan import Key

if TYPE_CHECKING:
    from millstream.logical.contract_offers import Declarations, Offers
    from millstream.logical.contract_parts import Part


@dataclass(frozen=True, slots=True)
class Scan(Leaf):
    """Punctuation is what the stream's declaration promises."""

    stem = "scan"
    page = "source"

    stream: str
    stream_schema: Schema

    @property
    def schema(self) -> Schema:
        return self.stream_schema

    def describe(self) -> str:
        return f"Scan {self.stream}"

    def hash_keys(self) -> Iterable[Key]:
        return [self.schema.names[:1]]

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[Part, ...], declared: Declarations) -> Offers:
        del inputs, parts
        return declared.offers(self)
