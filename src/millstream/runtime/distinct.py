"""Duplicate elimination.

| | |
|---|---|
| computes | the first of all equal tuples, at once and with its timestamp; NULL equals NULL, NaN equals NaN |
| state | every distinct tuple that may still arrive again |
| punctuation in → purged → out | any → the tuples that match it → itself, unless covered by an earlier one |
| progress v, or the port's bound v | → tuples with a column that v closes (`time_closing`) → forwarded if in band |
| feedback in → purged | the tuples that match it |
| cost | a hash join of the page with the state |

Time purges only if a column follows it: an equal tuple would have the same value there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import FOREVER, Schema
from millstream.algebra.shed import Shed
from millstream.algebra.time_limits import own_limits
from millstream.runtime.operator.capabilities import Disclaims, LacksShed
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.keys import joined, normalized
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_closing import TimeClosing
from millstream.runtime.state.table import StateTable


@carries_out("distinct")
class Distinct(Operator, Disclaims, LacksShed):
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._columns = list(schema.names)
        self._seen = StateTable(schema.polars)
        self._emitted = PunctuationSet()
        self._closing = TimeClosing(own_limits(schema.trails, schema.names))

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None else self._first(port.rows)
        fresh = None if port.punctuations is None else self._emitted.add(port.punctuations)
        self._purge(fresh, max(port.bound, self._emitted.progress))
        return Output(rows, fresh or None)

    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:  # noqa: ARG002
        return passed.later(None)  # a later one of equal tuples is then the first

    def _first(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Return the tuples that were not seen before, and store them."""
        new = normalized(rows, self._columns).unique(self._columns, keep="first", maintain_order=True)
        if len(self._seen):
            # The page is smaller than the state, so the state probes it.
            known = joined(self._seen.frame(), new, self._columns, "semi")
            if known.height:
                new = joined(new, known, self._columns, "anti")
        if not new.height:
            return None
        self._seen.append(new)
        return new

    def _purge(self, punctuations: Punctuations | None, bound: int) -> None:
        held = self._seen.frame()
        if not held.height:
            return
        if bound == FOREVER and self._closing:
            self._seen.replace(held.clear())
            return
        closed = self._closing.advance(bound)
        if punctuations is not None and len(punctuations):
            closed = Punctuations.concat([punctuations, closed])
        if len(closed):
            self._seen.keep(~closed.match(held))

    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:  # noqa: ARG002
        self._seen.keep(~pattern.match(self._seen.frame()))

    def tables(self) -> Mapping[str, StateTable]:
        return {"seen": self._seen}

    def scalars(self) -> dict[str, Any]:
        return {"put_out": self._emitted.to_value()}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._emitted = PunctuationSet.from_value(values["put_out"])
