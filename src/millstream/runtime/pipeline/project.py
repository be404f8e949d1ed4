"""Projection, with computed columns.

| | |
|---|---|
| computes | the named expressions for every tuple, timestamps unchanged |
| state | no tuples; the punctuations emitted so far on output columns that are computed, or have several sources |
| punctuation in → purged → out | one whose restricted columns are all emitted unchanged → nothing → itself, renamed |
| on a column that follows time | also on the expressions emitted that rise with it (`rising`) |
| other punctuation | dropped: nothing is known of a computed or dropped column of later tuples |
| a dropped column that equals a kept one | its restriction moves to the first output column of its `equal` group |
| progress | forwarded, also when the punctuation itself is dropped |
| cost | one pass over the columns that expressions read; a plain column costs nothing |

The restriction of a column that is emitted several times is on its first name. Renaming keeps different punctuations
different, so one is compared with earlier ones only if it restricts an output column that has several sources, or one
that is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.expression import Column, Expression
from millstream.algebra.monotone import first_of_each, rising
from millstream.algebra.names import Groups, projected_names
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import TS, Schema
from millstream.runtime.expression.checks import Checks, rows_using
from millstream.runtime.expression.evaluate import predicate, to_polars
from millstream.runtime.operator.capabilities import HoldsNothing, KeepsPosition, UsesValues
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.propagation import Emitted
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.pipeline.rising import Rising
from millstream.runtime.python.calls import PythonCalls

KEEP = "__keep"


class Columns:
    """Computes pages of a schema: `items` and `condition` are over the columns of the input page."""

    def __init__(
        self, schema: Schema, items: Sequence[tuple[str, Expression]], condition: Expression | None = None
    ) -> None:
        self._calls = PythonCalls(condition, [item for _, item in items])
        condition = self._calls.condition
        items = [(name, item) for (name, _), item in zip(items, self._calls.items, strict=True)]
        self._first: tuple[Checks, pl.Expr] | None = None
        if condition is not None and self._calls.of_items:
            self._first, condition = (Checks(condition), predicate(condition)), None
        self._conditional = condition is not None
        # The hidden timestamp is not plain: selected, it becomes a TIMESTAMP.
        self._plain = {name: i.name for name, i in items if isinstance(i, Column) and i.name != TS} | {TS: TS}
        self._condition, self._items = condition, [item for _, item in items]
        self._checks = Checks(condition, self._items)
        self._computed = [to_polars(item).alias(name) for name, item in items if name not in self._plain]
        if condition is not None:
            self._computed.append(predicate(condition).fill_null(False).alias(KEEP))
        # If the visible time is emitted, the hidden one need not be filtered too: it is the same number.
        self._time = schema.time if self._conditional and schema.time in self._plain else None
        self._order = list(schema.names) if self._time is not None else [*schema.names, TS]

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Return the rows that satisfy the condition; None if none does."""
        if self._calls:
            rows = self._called(rows)
            if not rows.height:
                return None
        self._checks.verify(rows)
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

    def uses(self, rows: pl.DataFrame, column: str) -> pl.Series:
        """Return a mask of the rows of which a value of the column that does not fit is used."""
        if self._calls:  # a Python function may read it
            return pl.repeat(True, rows.height, eager=True)
        return rows_using(rows, column, self._condition, self._items)

    def _called(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the results of Python functions; without those on which items must not call any."""
        rows = self._calls.for_condition(rows)
        if self._first is not None:
            checks, keep = self._first
            checks.verify(rows)
            rows = rows.filter(keep)
        return self._calls.for_items(rows)


@carries_out("project")
class Project(Operator, HoldsNothing, UsesValues, KeepsPosition):
    def __init__(
        self, input_schema: Schema, schema: Schema, items: tuple[tuple[str, Expression], ...], equal: Groups = ()
    ) -> None:
        self.schema = schema
        self._columns = Columns(schema, items)
        self._names = projected_names(items, input_schema, equal)
        first, others = first_of_each(rising(items, input_schema.trails), self._names)
        self._rising = Rising(input_schema, self._names, first)
        self._others = [
            Rising(
                input_schema, {c: name for c, name in self._names.items() if c != rises.column}, {rises.column: rises}
            )
            for rises in others
        ]
        targets = Counter(self._names.values())
        computed = self._rising.names.union(*(other.names for other in self._others))
        self._shared = [name for name, sources in targets.items() if sources > 1 or name in computed]
        self._shared += sorted(computed - targets.keys())
        self._emitted = Emitted(self._shared)

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None else self._columns(port.rows)
        punctuations = None if port.punctuations is None else self.pass_on(port.punctuations)
        return Output(rows, punctuations or None)

    def uses(self, rows: pl.DataFrame, column: str) -> pl.Series:
        return self._columns.uses(rows, column)

    def meet(self, port: int, element: Element) -> Output:  # noqa: ARG002
        return Output(elements=(element.select(self._names),))

    def pass_on(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations to emit for these."""
        kept = self._rising(punctuations)
        if self._others and len(punctuations):
            more = [computed for other in self._others if (computed := other.computed(punctuations)) is not None]
            kept = Punctuations.concat([kept, *more]) if more else kept
        return self._emitted.release([kept]).with_progress(kept.progress) if self._shared else kept

    def scalars(self) -> dict[str, Any]:
        return {"emitted": self._emitted.to_value()} if self._shared else {}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        if "emitted" in values:
            self._emitted.restore(values["emitted"])
