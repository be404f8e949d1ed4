"""Nodes that work tuple by tuple on one input: they hold nothing and run on any shard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.logical.plan import Key, Names, Plan

if TYPE_CHECKING:
    from millstream.logical.contract_offers import Offers
    from millstream.logical.contract_parts import Part


class Stateless(Plan):
    __slots__ = ()

    stateless = True
    positional = False
    punctuates: Names = frozenset()

    def hash_keys(self) -> Iterable[Key]:
        return ()

    def parts(self, inputs: tuple[Offers, ...]) -> tuple[Part, ...]:
        del inputs
        return ()
