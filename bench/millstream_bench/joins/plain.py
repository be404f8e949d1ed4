"""The plain join to compare with: it finds pairs like the window join, with the same kernel, and ignores punctuation.
Time purges tuples outside the window; without a window nothing is purged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from millstream.algebra.schema import NEVER, TS, Schema
from millstream.algebra.window import Window
from millstream.runtime.join.index import Equality
from millstream.runtime.join.kernel import Half, JoinKernel, named
from millstream.runtime.operator.contract import NOTHING, Input, Operator, Output
from millstream.runtime.operator.time_order import by_time
from millstream.runtime.state.table import StateTable


class PlainJoin(Operator):
    """A symmetric join of two inputs on one key with equal windows."""

    arity = 2

    def __init__(
        self, left: Schema, right: Schema, schema: Schema, key: str, window: Window, *, merges: bool = False
    ) -> None:
        self.schema, self.merges, self._window = schema, merges, window
        self._kernel = JoinKernel(Equality.of(left, right, schema, [(key, key)]), None, (window, window))
        names = schema.names[: len(left)], schema.names[len(left) :]
        self._given = [*left.names, TS], [*right.names, TS]
        self._named = [*names[0], TS], [*names[1], TS]
        types = schema.polars
        self._tables = tuple(StateTable({name: types[name] for name in own}) for own in self._named)

    def process(self, inputs: Sequence[Input]) -> Output:
        new: list[pl.DataFrame | None] = [
            None if port.rows is None or not port.rows.height else named(port.rows, given, names)
            for port, given, names in zip(inputs, self._given, self._named, strict=True)
        ]
        left, right = (Half(table.frame(), rows) for table, rows in zip(self._tables, new, strict=True))
        rows = self._kernel.pairs(left, right)
        if rows is not None and self.merges:
            rows = by_time(rows)
        for half, table, other in zip((left, right), self._tables, reversed(inputs), strict=True):
            if half.new is not None:
                table.append(half.new, half.joined)
            if self._window.range is not None and other.bound > NEVER:
                table.purge_below(TS, other.bound - self._window.range)
        return NOTHING if rows is None else Output(rows)

    def tables(self) -> Mapping[str, StateTable]:
        return {"left": self._tables[0], "right": self._tables[1]}
