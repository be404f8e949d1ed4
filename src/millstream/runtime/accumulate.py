"""Accumulators: COUNT, SUM, AVG, MIN and MAX as mergeable partial results.

A partial result is one column, two for AVG, and partial results of disjoint bags of tuples merge into that of their
union; so pages, panes and windows all roll up the same way, in any order. NULL as in SQL: COUNT(x) does not count it,
the others skip it, and SUM, AVG, MIN and MAX of nothing are NULL.

| function | partial | from tuples | merge | result |
|---|---|---|---|---|
| COUNT(*) | n | number of tuples | sum | n |
| COUNT(x) | n | number of x not NULL | sum | n |
| SUM(x) | s | sum, NULL if nothing was added | the same | s |
| AVG(x) | s, n | sum and COUNT(x) | sums | s / n, NULL if n = 0 |
| MIN(x), MAX(x) | m | least, greatest | the same | m |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from millstream.algebra.types import Type


@dataclass(frozen=True, slots=True)
class Reduction:
    """One column of partial results from one input column: `rows` and `count` (of those not NULL), `sum` (NULL if
    nothing was added) and `total` (zero then), `min` and `max`."""

    name: str
    operation: str
    column: str | None
    type: pl.DataType

    def expression(self) -> pl.Expr:
        if self.column is None:
            return pl.len().cast(self.type).alias(self.name)
        column = pl.col(self.column)
        match self.operation:
            case "count":
                made = column.count().cast(self.type)
            case "sum":
                made = pl.when(column.count() > 0).then(column.cast(self.type).sum())
            case "total":
                made = column.cast(self.type).sum()
            case "min":
                made = column.min().cast(self.type)
            case "max":
                made = column.max().cast(self.type)
            case other:
                raise ValueError(f"no way to reduce a column called {other}")
        return made.alias(self.name)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate of an input column (None: COUNT(*)), under an output name."""

    name: str
    function: str
    argument: str | None
    type: Type

    @property
    def partial_types(self) -> dict[str, pl.DataType]:
        """The columns of the partial result: AVG has its sum and its count.

        >>> Aggregation("a", "AVG", "x", Type.DOUBLE).partial_types
        {'a__sum': Float64, 'a__count': Int64}
        """
        if self.function == "AVG":
            return {f"{self.name}__sum": pl.Float64(), f"{self.name}__count": pl.Int64()}
        return {self.name: self.type.polars}

    def partials(self) -> list[Reduction]:
        """The partial result of a group of tuples."""
        columns = self.partial_types.items()
        if self.argument is None:
            return [Reduction(name, "rows", None, type_) for name, type_ in columns]
        operations = {"AVG": ("total", "count")}.get(self.function, (self.function.lower(),))
        return [
            Reduction(name, operation, self.argument, type_)
            for (name, type_), operation in zip(columns, operations, strict=True)
        ]

    def merges(self) -> list[Reduction]:
        """The partial result of a group of partial results."""
        operation = "total" if self.function in ("COUNT", "AVG") else self.function.lower()
        return [Reduction(name, operation, name, type_) for name, type_ in self.partial_types.items()]

    def result(self) -> pl.Expr:
        """The finished value of a partial result."""
        if self.function != "AVG":
            return pl.col(self.name)
        sums, count = (pl.col(name) for name in self.partial_types)
        return pl.when(count > 0).then(sums / count).cast(self.type.polars).alias(self.name)


def grouped(frame: pl.DataFrame, keys: Sequence[pl.Expr | str], values: Sequence[pl.Expr]) -> pl.DataFrame:
    """One row per distinct key, NULL being a key like any other; without keys one row, unless there are no tuples."""
    if keys:
        return frame.group_by(list(keys)).agg(list(values))
    return frame.select(list(values)).head(frame.height)
