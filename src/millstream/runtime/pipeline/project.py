"""Projection, with computed columns.

| | |
|---|---|
| computes | the named expressions for every tuple, timestamps unchanged |
| state | no tuples; the punctuations emitted so far, if several input columns share an output column |
| punctuation in → purged → out | one whose restricted columns are all emitted unchanged → nothing → itself, renamed |
| other punctuation | dropped: nothing is known of a computed or dropped column of later tuples |
| a dropped column that equals a kept one | its restriction moves to the first output column of its `equal` group |
| progress | forwarded, also when the punctuation itself is dropped |
| cost | one pass over the columns that expressions read; a plain column costs nothing |

The restriction of a column that is emitted several times is on its first name. Renaming keeps different punctuations
different, so one is compared with earlier ones only if it restricts an output column that has several sources.
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
from millstream.runtime.expression.evaluate import predicate, to_polars
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.propagation import Emitted
from millstream.runtime.operator.registry import carries_out

KEEP = "__keep"


class Columns:
    """Computes pages of a schema: `items` and `condition` are over the columns of the input page."""

    def __init__(
        self, schema: Schema, items: Sequence[tuple[str, Expression]], condition: Expression | None = None
    ) -> None:
        self._conditional = condition is not None
        # The hidden timestamp is not plain: selected, it becomes a TIMESTAMP.
        self._plain = {name: i.name for name, i in items if isinstance(i, Column) and i.name != TS} | {TS: TS}
        self._computed = [to_polars(item).alias(name) for name, item in items if name not in self._plain]
        if condition is not None:
            self._computed.append(predicate(condition).fill_null(False).alias(KEEP))
        # If the visible time is emitted, the hidden one need not be filtered too: it is the same number.
        self._time = schema.time if self._conditional and schema.time in self._plain else None
        self._order = list(schema.names) if self._time is not None else [*schema.names, TS]

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Return the rows that satisfy the condition; None if none does."""
        # Expressions over literals alone yield one row; the timestamp preserves the height.
        computed = rows.select(*self._computed, TS) if self._computed else rows
        columns = [
            rows.get_column(self._plain[name]).alias(name) if name in self._plain else computed.get_column(name)
            for name in self._order
        ]
        if self._conditional:
            keep = computed.get_column(KEEP)
            if not keep.any():
                return None
            if not keep.all():
                columns = [column.filter(keep) for column in columns]
        if self._time is not None:
            columns.append(columns[self._order.index(self._time)].cast(pl.Int64).alias(TS))
        return pl.DataFrame(columns)


@carries_out("project")
class Project(Operator):
    def __init__(
        self, input_schema: Schema, schema: Schema, items: tuple[tuple[str, Expression], ...], equal: Groups = ()
    ) -> None:
        self.schema = schema
        self._columns = Columns(schema, items)
        self._names = projected_names(items, input_schema, equal)
        targets = Counter(self._names.values())
        self._shared = [name for name, sources in targets.items() if sources > 1]
        self._emitted = Emitted(self._shared)

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None else self._columns(port.rows)
        punctuations = None if port.punctuations is None else self.pass_on(port.punctuations)
        return Output(rows, punctuations or None)

    def meet(self, port: int, element: Element) -> Output:  # noqa: ARG002
        return Output(elements=(element.select(self._names),))

    def pass_on(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations to emit for these."""
        kept = punctuations.select(self._names)
        return self._emitted.release([kept]).with_progress(kept.progress) if self._shared else kept

    def scalars(self) -> dict[str, Any]:
        return {"emitted": self._emitted.to_value()} if self._shared else {}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        if self._shared:
            self._emitted.restore(values["emitted"])
