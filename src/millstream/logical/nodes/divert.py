"""Diversion: the tuples of a derived stream whose values do not fit, or the others.

A derived stream with `on_overflow = 'bad'` and its companion read the same tuples, each through a diversion. What it
diverts is counted as the stream's bad rows. So no condition of a query is tested below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.expression import Expression
from millstream.algebra.response import Rule
from millstream.algebra.stream_id import StreamId
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed, columns_read


@dataclass(frozen=True, slots=True)
class Divert(Stateless, Passing):
    """`fails`: whether a value of a tuple does not fit; `stream`: the derived stream; `kept`: whether the tuples that
    fit are emitted, or those that do not."""

    stem = "divert"
    forgets = True
    rules = (Rule("any column", why="bad rows are reported, also those that are not wanted"),)
    page = "select"

    input: Plan
    fails: Expression
    stream: str
    kept: bool = True

    def describe(self) -> str:
        return f"Divert {'to' if self.kept else 'into'} {StreamId.of(self.stream).bad} {self.fails}"

    def canonical(self, spelled: Callable[[Expression], Expression]) -> Plan:
        return replace(self, fails=spelled(self.fails))

    def push(self, conditions: Conditions) -> Pushed:
        return Pushed(self, ((),), conditions)

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(kept | columns_read(self.fails)),)

    def parameters(self) -> dict[str, Any]:
        return {"schema": self.schema, "fails": self.fails, "stream": self.stream, "kept": self.kept}
