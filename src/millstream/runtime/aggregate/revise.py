"""Numbers the answers for each window and group of an aggregate.

| | |
|---|---|
| computes | its input, with the number of the answer for the window and group, from 1 |
| state | the number of early answers, by window and group, until the final one |
| punctuation in → purged → out | any → the windows and groups that match it → itself |
| progress v | → the windows over the stream's time that end by v → itself |
| early rows | are numbered and counted, if they answer the query that owns it |
| cost | none without prods; a join of the rows with the state with them |

Without early answers the final one has the number 1. A row that HAVING drops is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from millstream.algebra.early import REVISION, Prod
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import TS, Schema
from millstream.runtime.aggregate.closed_answers import reached_by, still_open
from millstream.runtime.operator.capabilities import Disclaims, RowWise, TakesEarly
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.keys import joined
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.state.table import StateTable


@carries_out("revise")
class Revise(Operator, RowWise, TakesEarly, Disclaims):
    def __init__(self, schema: Schema, keys: tuple[str, ...], owner: str = "", timed: bool = False) -> None:
        self.schema, self._keys, self._owner, self.timed = schema, list(keys), owner, timed
        self._counts = StateTable({name: schema.polars[name] for name in keys} | {REVISION: pl.Int64()})

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        rows = None if port.rows is None else self._numbered(port.rows)
        if rows is not None and len(self._counts):
            final = joined(self._counts.frame(), rows, self._keys, "semi")
            self._forget(final)
        if len(self._counts):
            held, reached = self._counts.frame(), reached_by(port)
            self._counts.keep(still_open(held, self._keys, port.punctuations, reached, timed=self.timed))
        return Output(rows, port.punctuations)

    def _numbered(self, rows: pl.DataFrame) -> pl.DataFrame:
        names = [*self.schema.names, TS]
        if not len(self._counts):
            return rows.with_columns(pl.lit(1, pl.Int64).alias(REVISION)).select(names)
        counts = self._counts.frame()
        known = joined(rows, counts, self._keys, "left")
        return known.with_columns(pl.col(REVISION).fill_null(0) + 1).select(names)

    def _forget(self, counted: pl.DataFrame) -> None:
        if counted.height:
            kept = joined(self._counts.frame(), counted, self._keys, "anti")
            self._counts.replace(kept)

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:
        given = rows[0]
        if given is None or not given.height or not prod.concerns(self._owner):
            return None
        numbered = self._numbered(given)
        counted = numbered.select([*self._keys, REVISION])
        self._forget(counted)
        self._counts.append(counted)
        return numbered

    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:  # noqa: ARG002
        if pattern.attributes <= {*self._keys}:
            self._counts.keep(~pattern.match(self._counts.frame()))

    def tables(self) -> Mapping[str, StateTable]:
        return {"answers": self._counts}
