"""Join of a stream with a static table.

| | |
|---|---|
| computes | every tuple with every table row that has equal keys (NULL never equals) and satisfies the residual |
| `outer` | a tuple without a row is emitted once, with NULLs in the table's columns |
| state | none: the table never changes |
| punctuation in → purged → out | any → nothing → itself, under the output's names (of equal keys: the stream's) |
| progress | is forwarded; results carry the tuple's timestamp and keep the stream's order |
| cost | one look-up of the page's keys in the table; the index of close distinct integers is kept, hashes are not |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.expression import Expression
from millstream.algebra.schema import TS, Schema
from millstream.algebra.shed import ANYTHING, Shed
from millstream.runtime.expression.condition import Condition
from millstream.runtime.join.index import Equality, Lookup
from millstream.runtime.join.kernel import JoinColumns, named, paired
from millstream.runtime.operator.capabilities import LacksShed
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import stack, take, where
from millstream.runtime.operator.registry import Site, carries_out

Visible = Callable[[Places, Places], Mask]
"""Tells which pairs of a tuple and a row, by their places, are of a tuple that sees the row."""


@carries_out("table_join")
class TableJoin(Operator, LacksShed):
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
        self._columns = JoinColumns([input_schema], schema)
        table_names = list(schema.names[len(input_schema) :])
        self._table = named(table, list(table_schema.names), table_names)
        self._nulls = [pl.lit(None, dtype=schema.type_of(name).polars).alias(name) for name in table_names]
        self._equality = Equality.of(input_schema, table_schema, schema, keys)
        keys_in_table = self._equality.integers(self._table, 1)
        self._index = None if keys_in_table is None else Lookup.of(keys_in_table)
        self._residual = None if residual is None else Condition(residual)

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> Operator:
        table = site.tables.get(parameters["table"])
        nothing = parameters["table_schema"].empty().drop(TS)
        return cls(**{**parameters, "table": nothing if table is None else table})

    def process(self, inputs: Sequence[Input]) -> Output:
        [arrived], punctuations = self._columns.take(inputs), inputs[0].punctuations
        if punctuations is not None:
            punctuations = punctuations.select(self._columns.names[0])
        made = None if arrived is None else self._join(arrived, self._table, self._index)
        return Output(made, punctuations or None)

    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:  # noqa: ARG002
        return ANYTHING if port else passed

    def _join(
        self, rows: pl.DataFrame, table: pl.DataFrame, known: Lookup | None = None, visible: Visible | None = None
    ) -> pl.DataFrame | None:
        """Return the results of tuples with the rows of a table; `visible` tells which pairs count."""
        left, right = self._equality.match(rows, table, probing_left=True, known=known)
        if visible is not None:
            seen = visible(left, right)
            left, right = left[seen], right[seen]
        pairs = None
        if len(left):
            pairs = paired(rows, table, (left, right), rows.get_column(TS).to_numpy().take(left))
            if self._residual is not None:
                allowed = self._residual.holds(pairs)
                left, pairs = left[allowed], where(pairs, allowed)
        if self._outer:
            pairs = self._with_padded(rows, pairs, left)
        return pairs if pairs is not None and pairs.height else None

    def _with_padded(self, rows: pl.DataFrame, pairs: pl.DataFrame | None, left: Places) -> pl.DataFrame | None:
        """Return the pairs and the padded tuples without a partner, in the order of the tuples."""
        alone = np.ones(rows.height, dtype=np.bool_)
        alone[left] = False
        if not alone.any():
            return pairs
        padded = where(rows, alone).select(*self._columns.names[0].values(), *self._nulls, TS)
        if pairs is None:
            return padded
        order = np.argsort(np.concatenate([left, np.flatnonzero(alone)]), kind="stable")
        return take(stack([pairs, padded]), order)
