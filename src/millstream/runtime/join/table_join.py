"""Join of a stream with a static table.

| | |
|---|---|
| computes | every tuple with every table row that has equal keys (NULL never equals) and satisfies the residual |
| `outer` | a tuple that finds no row is put out once, with NULLs in the table's columns |
| state | none: the table never changes |
| punctuation in → purged → out | any → nothing → itself, under the output's names (of equal keys: the stream's) |
| progress | goes on; results carry the tuple's timestamp and keep the stream's order |
| cost | one look-up of the page's keys in the table; an index is kept for distinct integers, hashes are not |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Places
from millstream.algebra.expression import Expression
from millstream.algebra.schema import TS, Schema
from millstream.runtime.expression.evaluate import predicate
from millstream.runtime.join.index import Equality, Lookup
from millstream.runtime.join.kernel import holds, named, paired
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import stack, take, where
from millstream.runtime.operator.registry import Site, carries_out


@carries_out("table_join")
class TableJoin(Operator):
    def __init__(
        self,
        input_schema: Schema,
        table_schema: Schema,
        schema: Schema,
        table: pl.DataFrame,
        keys: tuple[tuple[str, str], ...] = (),
        residual: Expression | None = None,
        outer: bool = False,
    ) -> None:
        self.schema = schema
        self._outer = outer
        self._own_names = list(schema.names[: len(input_schema)])
        self._input_names = list(input_schema.names)
        self._names = dict(zip(self._input_names, self._own_names, strict=True))
        table_names = list(schema.names[len(input_schema) :])
        self._table = named(table, list(table_schema.names), table_names)
        self._nulls = [pl.lit(None, dtype=schema.type_of(name).polars).alias(name) for name in table_names]
        self._equality = Equality.of(input_schema, table_schema, schema, keys)
        found = self._equality.integers(self._table, 1)
        self._index = None if found is None else Lookup.of(found)
        self._residual = None if residual is None else predicate(residual)

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> Operator:
        table = site.tables.get(parameters["table"])
        nothing = parameters["table_schema"].empty().drop(TS)
        return cls(**{**parameters, "table": nothing if table is None else table})

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None
        if port.rows is not None and port.rows.height:
            rows = self._join(named(port.rows, [*self._input_names, TS], [*self._own_names, TS]))
        punctuations = None if port.punctuations is None else port.punctuations.select(self._names)
        return Output(rows, punctuations or None)

    def _join(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        left, right = self._equality.match(rows, self._table, probing_left=True, known=self._index)
        made = None
        if len(left):
            made = paired(rows, self._table, (left, right), rows.get_column(TS).to_numpy().take(left))
            if self._residual is not None:
                allowed = holds(made, self._residual)
                left, made = left[allowed], where(made, allowed)
        if self._outer:
            made = self._with_the_lonely(rows, made, left)
        return made if made is not None and made.height else None

    def _with_the_lonely(self, rows: pl.DataFrame, made: pl.DataFrame | None, left: Places) -> pl.DataFrame | None:
        """Also the tuples without a partner, each in its place."""
        lonely = np.ones(rows.height, dtype=np.bool_)
        lonely[left] = False
        if not lonely.any():
            return made
        bare = where(rows, lonely).select(*self._own_names, *self._nulls, TS)
        if made is None:
            return bare
        order = np.argsort(np.concatenate([left, np.flatnonzero(lonely)]), kind="stable")
        return take(stack([made, bare]), order)
