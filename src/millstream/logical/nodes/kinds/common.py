"""Base classes of nodes: the answers that all nodes of one kind share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from millstream.algebra.names import Groups
from millstream.algebra.response import Rule
from millstream.algebra.schema import Schema
from millstream.errors import PlanError
from millstream.logical.plan import Key, Names, Plan

if TYPE_CHECKING:
    from millstream.logical.contract.offers import Offers
    from millstream.logical.contract.state_parts import StatePart


class Leaf(Plan):
    """Reads no other plan. It has no operator: the graph has a source in its place, or nothing."""

    __slots__ = ()

    rules = (Rule("any column", passes="to its source", why="the source receives it"),)
    stateless = False
    positional = False
    holds_time = False
    holds_punctuation = False
    punctuates: Names = frozenset()
    equal_columns: Groups = ()

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return ()

    def keys_below(self, key: Key) -> list[Key] | None:
        return None

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return ()

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return inputs[0]

    def parameters(self) -> dict[str, Any]:
        raise PlanError("M3090", f"no operator carries out {type(self).__name__}")


class Stateless(Plan):
    """Processes one input tuple by tuple: it holds no state and runs on any shard."""

    __slots__ = ()

    stateless = True
    positional = False
    holds_time = False
    punctuates: Names = frozenset()

    def hash_keys(self) -> Iterable[Key]:
        return ()

    def keys_below(self, key: Key) -> list[Key] | None:
        sources = [source for name in key for _, source in self.copied(name)]
        return [tuple(sources)] if len(sources) == len(key) else None

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return ()


class Passing(Plan):
    """Emits tuples of `input` unchanged and at once: each column is a copy, all punctuation is passed on."""

    __slots__ = ()

    holds_time = False
    holds_punctuation = False

    input: Plan

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        return ((0, column),)

    @property
    def equal_columns(self) -> Groups:
        return self.input.equal_columns

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return inputs[0]
