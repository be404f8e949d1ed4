"""An input of an operator whose properties are known: it stands for a whole sub-plan while contracts are tried.

A node derives its schema from the nodes below it whenever it is asked. The search asks often, so each node gets inputs
that know their answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.algebra.names import Groups
from millstream.algebra.schema import Schema
from millstream.logical.contract.names import base_streams, clocks
from millstream.logical.nodes.kinds.common import Leaf
from millstream.logical.plan import Key, Plan


@dataclass(frozen=True, slots=True)
class KnownInput(Leaf):
    stem = "known_input"
    runs = False

    known_schema: Schema
    known_equal: Groups
    streams: tuple[str, ...]
    timed_by: tuple[Plan, ...]

    @property
    def schema(self) -> Schema:
        return self.known_schema

    @property
    def equal_columns(self) -> Groups:  # type: ignore[override]
        return self.known_equal

    def describe(self) -> str:
        return f"KnownInput {' and '.join(self.streams)}"

    def hash_keys(self) -> Iterable[Key]:
        return ()


def known(plan: Plan) -> Plan:
    """Return an input that answers as a plan does; a leaf is cheap, and stands for itself."""
    return KnownInput(plan.schema, plan.equal_columns, base_streams(plan), tuple(clocks(plan))) if plan.inputs else plan
