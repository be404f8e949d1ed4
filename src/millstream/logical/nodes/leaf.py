"""Nodes that read no other plan. No operator carries them out: the graph has a source there, or nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.algebra.names import Groups
from millstream.errors import PlanError
from millstream.logical.plan import Key, Names, Plan

if TYPE_CHECKING:
    from millstream.logical.contract_offers import Offers
    from millstream.logical.contract_parts import Part


class Leaf(Plan):
    __slots__ = ()

    stateless = False
    positional = False
    punctuates: Names = frozenset()
    equal_columns: Groups = ()

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        del column
        return ()

    def keys_below(self, key: Key) -> list[Key] | None:
        del key
        return None

    def parts(self, inputs: tuple[Offers, ...]) -> tuple[Part, ...]:
        del inputs
        return ()

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[Part, ...]) -> Offers:
        """What the stream itself promises."""
        del parts
        return inputs[0]

    def parameters(self) -> dict[str, Any]:
        raise PlanError("M3090", f"no operator carries out {type(self).__name__}")
