"""Nodes that put out tuples of `input` as they are: each column is a copy, all punctuation goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.names import Groups
from millstream.algebra.schema import Schema
from millstream.logical.plan import Key, Plan

if TYPE_CHECKING:
    from millstream.logical.contract_offers import Offers
    from millstream.logical.contract_parts import Part


class Passing(Plan):
    __slots__ = ()

    input: Plan

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return ((0, column),)

    @property
    def equal_columns(self) -> Groups:
        return self.input.equal_columns

    def keys_below(self, key: Key) -> list[Key] | None:
        return [key]

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[Part, ...]) -> Offers:
        del parts
        return inputs[0]
