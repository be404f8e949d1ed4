"""A vectorized aggregate written in Python: `iterate` takes the columns of all tuples of a partition that a page has,
in order, and returns a column with a result for each of them.

| frame | called with |
|---|---|
| none, `UNBOUNDED` | the new tuples of a partition, once a page |
| finite | the tuples of the frame, for each tuple; the result is that of the last one |
| a group and window | all tuples of it, once; the result is that of the last one |
| slots of time, beside other aggregates | one tuple at a time |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.python.aggregate_call import PythonAggregateCall
from millstream.algebra.python.definition import ARROW, VALUE, Declaration
from millstream.errors import CodeError
from millstream.runtime.over.evaluation import Running
from millstream.runtime.over.frames import Taken
from millstream.runtime.over.partitions import Arranged
from millstream.runtime.over.row_aggregate import Row
from millstream.runtime.over.row_frames import RowFrames
from millstream.runtime.python.aggregate import BaseVersion
from millstream.runtime.python.results import whole_column


def is_paged(call: object) -> bool:
    return isinstance(call, PythonAggregateCall) and call.declared.style != VALUE


class PagedVersion(BaseVersion):
    def __init__(self, declared: Declaration) -> None:
        super().__init__(declared)
        self._arrow = declared.style == ARROW
        self._given = [type_.polars for _, type_ in declared.parameters]

    def page(self, columns: Sequence[pl.Series]) -> list[pl.Series]:
        """Take tuples; return the columns of their results."""
        height = len(columns[0])
        given: list[Any] = [column.to_arrow() if self._arrow else column for column in columns]
        returned = self._guarded("iterate", self._iterate, *given)
        parts = (returned,) if len(self._types) == 1 else returned
        if not isinstance(parts, tuple | list) or len(parts) != len(self._types):
            message = f"aggregate {self._name} returned a {type(returned).__name__}, not {len(self._types)} columns"
            raise CodeError("M6054", message)
        what = f"aggregate {self._name}"
        return [whole_column(part, height, type_, what) for part, type_ in zip(parts, self._types, strict=True)]

    def whole(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Take tuples; return the results of the last one."""
        typed = zip(zip(*rows, strict=True), self._given, strict=True)
        found = self.page([pl.Series(values, dtype=type_) for values, type_ in typed])
        return (tuple(column[-1] for column in found),)

    def initialize(self, *arguments: Any) -> Sequence[Row]:
        return self.whole([arguments])

    def iterate(self, *arguments: Any) -> Sequence[Row]:
        return self.whole([arguments])

    def _described(self, method: str, arguments: Row) -> str:  # noqa: ARG002 - columns are too long
        return f"aggregate {self._name}.{method}"


class PagedFrames(RowFrames):
    """Frames without an end, of vectorized aggregates alone."""

    def take(self, rows: pl.DataFrame) -> Taken:
        codes = self.store.codes(rows)
        arranged = Arranged.by(codes)
        found: list[pl.DataFrame] = []
        for start, last in zip(arranged.starts, arranged.last, strict=True):
            places = arranged.order[start : last + 1]
            partition, chosen = self.store.held[codes[places[0]]], rows[places]
            partition.arrivals, partition.changed = partition.arrivals + chosen.height, True
            columns: list[pl.Series] = []
            for evaluation, names in zip(partition.evaluations, self._arguments, strict=True):
                assert isinstance(evaluation, Running)
                evaluation.instance.started = True
                version = evaluation.instance.aggregate
                assert isinstance(version, PagedVersion)
                columns += version.page([chosen.get_column(name) for name in names])
            named = zip(columns, self._columns, strict=True)
            found.append(pl.DataFrame([column.alias(made.name) for column, made in named]))
        self.number += rows.height
        return pl.concat(found)[np.argsort(arranged.order)].get_columns(), None
