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

    def partials(self) -> list[pl.Expr]:
        """The partial result of a group of tuples."""
        if self.argument is None:
            return [pl.len().cast(pl.Int64).alias(self.name)]
        column = pl.col(self.argument)
        match self.function:
            case "COUNT":
                return [column.count().cast(pl.Int64).alias(self.name)]
            case "SUM":
                return [_sum(column.cast(self.type.polars)).alias(self.name)]
            case "AVG":
                sums = column.cast(pl.Float64).sum().alias(f"{self.name}__sum")
                return [sums, column.count().cast(pl.Int64).alias(f"{self.name}__count")]
            case "MIN":
                return [column.min().cast(self.type.polars).alias(self.name)]
            case "MAX":
                return [column.max().cast(self.type.polars).alias(self.name)]
        raise ValueError(f"no aggregate function {self.function}")

    def merges(self) -> list[pl.Expr]:
        """The partial result of a group of partial results."""
        match self.function:
            case "COUNT" | "AVG":
                return [pl.col(name).sum() for name in self.partial_types]
            case "SUM":
                return [_sum(pl.col(self.name)).alias(self.name)]
            case "MIN":
                return [pl.col(self.name).min()]
        return [pl.col(self.name).max()]

    def result(self) -> pl.Expr:
        """The finished value of a partial result."""
        if self.function != "AVG":
            return pl.col(self.name)
        sums, count = (pl.col(name) for name in self.partial_types)
        return pl.when(count > 0).then(sums / count).cast(self.type.polars).alias(self.name)


def _sum(column: pl.Expr) -> pl.Expr:
    return pl.when(column.count() > 0).then(column.sum())


def grouped(frame: pl.DataFrame, keys: Sequence[pl.Expr | str], values: Sequence[pl.Expr]) -> pl.DataFrame:
    """One row per distinct key, NULL being a key like any other; without keys one row, unless there are no tuples."""
    if keys:
        return frame.group_by(list(keys)).agg(list(values))
    return frame.select(list(values)).head(frame.height)
