"""Duplicate elimination.

| | |
|---|---|
| computes | the first of all equal tuples, at once and with its timestamp; NULL equals NULL |
| state | every distinct tuple that may still arrive again |
| punctuation in → purged → out | any → the tuples that match it → itself, unless covered by an earlier one |
| progress v, or the port's bound v | → tuples older than v, if the time is a column → forwarded if in band |
| cost | a hash join of the page with the state |

Time purges only if it is one of the columns: equal tuples then have the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import NEVER, TS, Schema
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.state.table import StateTable


@carries_out("distinct")
class Distinct(Operator):
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._columns = list(schema.names)
        self._seen = StateTable(schema.polars)
        self._emitted = PunctuationSet()
        self._purged = NEVER

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None else self._first(port.rows)
        fresh = None if port.punctuations is None else self._emitted.add(port.punctuations)
        self._purge(fresh, max(port.bound, self._emitted.progress))
        return Output(rows, fresh or None)

    def _first(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Return the tuples that were not seen before, and store them."""
        new = rows.unique(self._columns, keep="first", maintain_order=True)
        if len(self._seen):
            # The page is smaller than the state, so the state probes it.
            known = self._seen.frame().join(new, on=self._columns, how="semi", nulls_equal=True)
            if known.height:
                new = new.join(known, on=self._columns, how="anti", nulls_equal=True, maintain_order="left")
        if not new.height:
            return None
        self._seen.append(new)
        return new

    def _purge(self, punctuations: Punctuations | None, bound: int) -> None:
        held = self._seen.frame()
        if not held.height:
            return
        gone = pl.repeat(False, held.height, dtype=pl.Boolean, eager=True)
        if punctuations is not None and len(punctuations):
            gone = punctuations.match(held)
        if self.schema.time is not None and bound > self._purged:
            gone = gone | (held.get_column(TS) < bound)
            self._purged = bound
        if gone.any():
            self._seen.keep(~gone)

    def tables(self) -> Mapping[str, StateTable]:
        return {"seen": self._seen}

    def scalars(self) -> dict[str, Any]:
        return {"put_out": self._emitted.to_value(), "purged": self._purged}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._emitted = PunctuationSet.from_value(values["put_out"])
        self._purged = values["purged"]
