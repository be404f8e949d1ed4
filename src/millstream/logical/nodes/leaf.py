"""Nodes that read no other plan. No operator carries them out: the graph has a source there, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from millstream.algebra.expression import Expression
from millstream.algebra.names import Groups
from millstream.errors import PlanError
from millstream.logical.plan import Conditions, Key, Names, Need, Plan, Pushed

if TYPE_CHECKING:
    from millstream.logical.contract_offers import Offers
    from millstream.logical.contract_parts import Cure, Part


class Leaf(Plan):
    __slots__ = ()

    stateless = False
    positional = False
    punctuates: Names = frozenset()
    equal_columns: Groups = ()

    def canonical(self, spelled: Callable[[Expression], Expression]) -> Plan:
        del spelled
        return self

    def push(self, conditions: Conditions) -> Pushed:
        return Pushed(self, (), conditions)

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        del kept
        return self, ()

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        del column
        return ()

    def keys_below(self, key: Key) -> list[Key] | None:
        del key
        return None

    def parts(self, inputs: tuple[Offers, ...]) -> tuple[Part, ...]:
        del inputs
        return ()

    def cures(self, part: Part) -> Iterator[Cure]:
        del part
        return iter(())

    def advice(self, part: Part, inputs: tuple[Offers, ...]) -> list[str]:
        del part, inputs
        return []

    def parameters(self) -> Mapping[str, Any]:
        raise PlanError("M3090", f"no operator carries out {type(self).__name__}")
