"""Projection, with computed columns.

| | |
|---|---|
| computes | the named expressions for every tuple, timestamps unchanged |
| state | no tuples; what it has put out, if several input columns share an output column |
| punctuation in → purged → out | one whose restricted columns are all put out as they are → nothing → itself, renamed |
| other punctuation | dropped: a computed column, or one that is gone, says nothing about what may still come |
| a dropped column that equals a kept one | its restriction moves to the first output column of its `equal` group |
| progress | goes on, also when the punctuation itself is dropped |
| cost | one pass over the columns that are read; a plain column costs nothing |

A column put out several times stands for its restriction under its first name. Renaming keeps apart what differs, so a
punctuation is compared with earlier ones only if it restricts an output column that has several sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.expression import Column, Expression
from millstream.algebra.names import Groups, projected_names
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import TS, Schema
from millstream.runtime.expression.evaluate import to_polars
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.propagation import Emitted
from millstream.runtime.operator.registry import carries_out


@carries_out("project")
class Project(Operator):
    def __init__(
        self, input_schema: Schema, schema: Schema, items: tuple[tuple[str, Expression], ...], equal: Groups = ()
    ) -> None:
        self.schema = schema
        self._plain = {
            name: item.name for name, item in items if isinstance(item, Column) and item.name in input_schema
        }
        self._computed = [to_polars(item).alias(name) for name, item in items if name not in self._plain]
        self._order = [*schema.names, TS]
        self._names = projected_names(items, input_schema, equal)
        targets = Counter(self._names.values())
        self._shared = [name for name, sources in targets.items() if sources > 1]
        self._emitted = Emitted(self._shared)

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None else self._rows(port.rows)
        punctuations = None if port.punctuations is None else self.pass_on(port.punctuations)
        return Output(rows, punctuations or None)

    def _rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        made = rows.select(*self._computed, TS) if self._computed else rows
        columns = {name: rows.get_column(source).alias(name) for name, source in self._plain.items()}
        return pl.DataFrame([columns[name] if name in columns else made.get_column(name) for name in self._order])

    def meet(self, port: int, element: Element) -> Output:  # noqa: ARG002
        return Output(elements=(element.select(self._names),))

    def pass_on(self, punctuations: Punctuations) -> Punctuations:
        """What goes out of punctuation that comes in."""
        kept = punctuations.select(self._names)
        return self._emitted.release([kept]).with_progress(kept.progress) if self._shared else kept

    def scalars(self) -> dict[str, Any]:
        return {"emitted": self._emitted.to_value()} if self._shared else {}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        if self._shared:
            self._emitted.restore(values["emitted"])
