"""A stream joined with a static table: every tuple probes the table, and no state is held.

A condition on the stream is pushed into it. One that reads the table becomes part of the join, unless the join is
outer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.expression import Expression, conjuncts
from millstream.algebra.names import Groups, equal_classes, prefixed
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import TS, Schema
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.common import Stateless
from millstream.logical.nodes.kinds.joining import Paired, Side, joined
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed, columns_read


@dataclass(frozen=True, slots=True)
class TableJoin(Stateless, Paired):
    stem = "table_join"
    rules = (
        Rule("columns of the stream, or keys", Reach.SOME, passes="the same, to the stream"),
        Rule("a column of the table", why="the tuples that meet such a row are not known"),
    )
    merges = False

    input: Plan
    table: str
    table_schema: Schema
    keys: tuple[tuple[str, str], ...] = ()
    residual: Expression | None = None
    stream_prefix: str | None = None
    table_prefix: str | None = None
    outer: bool = False

    @property
    def looks_up(self) -> str:
        return self.table

    @property
    def sides(self) -> tuple[Side, Side]:
        return (
            Side(self.input, self.input.schema, self.stream_prefix, self.keys_of(0), preserved=self.outer),
            Side(None, self.table_schema, self.table_prefix, self.keys_of(1)),
        )

    @property
    def schema(self) -> Schema:
        return self.joined_schema()

    def joined_schema(self) -> Schema:
        """The columns of both sides, with the time of the stream."""
        sides = self.sides
        source = sides[0].schema
        time = None if source.time is None else prefixed(source.time, self.stream_prefix)
        follows = tuple((prefixed(name, self.stream_prefix), value) for name, value in source.follows)
        offsets = tuple((prefixed(name, self.stream_prefix), offset) for name, offset in source.offsets)
        return replace(source, attributes=joined(sides), time=time, follows=follows, offsets=offsets)

    def describe(self) -> str:
        return f"TableJoin {self.table}{' outer' if self.outer else ''}{self._on()}{self._where()}"

    def push(self, conditions: Conditions) -> Pushed:
        stream, _ = self.sifters(() if self.outer else self.equal)
        inside = list(conjuncts(self.residual))
        above: list[Expression] = []
        for condition in conditions:
            if not stream.take(condition):
                (above if self.outer or TS in condition.columns() else inside).append(condition)
        return self.sifted((stream,), inside, above)

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        stream, _ = self.sides
        return self, (Need(stream.columns_of(kept | columns_read(self.residual)) | {*stream.keys}),)

    @property
    def equal_columns(self) -> Groups:
        return () if self.outer else equal_classes([*self.equal, *self.sides[0].groups])

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return inputs[0].renamed(self.sides[0].names)

    def parameters(self) -> dict[str, Any]:
        shared = self.values("table", "table_schema", "schema", "keys", "residual", "outer")
        return {"input_schema": self.input.schema} | shared
