"""Reductions: one value made of a column of each group, as a Polars expression or in an array of dense groups.

| operation | value | of no values | columns with a dense form |
|---|---|---|---|
| COUNT | number of values that are not NULL | 0 | all |
| SUM | sum | NULL | numbers |
| TOTAL | sum | 0 | numbers |
| LEAST, GREATEST | least, greatest value | NULL | integers, times |

A column that has NULL has no dense form, nor has an operation that does not define one: its groups are hashed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.schema import FOREVER, NEVER

Values = npt.NDArray[np.generic]
Dense = Callable[[pl.Series, Integers, Integers, pl.DataType], Values]


@dataclass(frozen=True, slots=True)
class Operation:
    """One way to reduce a column to a value of a type.

    `expression` gives the value of a group. `dense` gives those of all groups, from the column, the number of the group
    of each row, and how many rows each group has, for the types of column that `fits` names; None: there is none.
    `retract` takes a value that was merged back out of the merged value; None: that cannot be done.
    """

    expression: Callable[[pl.Expr, pl.DataType], pl.Expr]
    fits: Callable[[pl.DataType], bool] = lambda _: False
    dense: Dense | None = None
    retract: Callable[[pl.Expr, pl.Expr], pl.Expr] | None = None


def _total(column: pl.Expr, type_: pl.DataType) -> pl.Expr:
    return column.cast(type_).sum()


def _sum(column: pl.Expr, type_: pl.DataType) -> pl.Expr:
    return pl.when(column.count() > 0).then(_total(column, type_))


def _dense_counts(_column: pl.Series, _places: Integers, counts: Integers, _type: pl.DataType) -> Values:
    return counts


def _dense_sums(column: pl.Series, places: Integers, counts: Integers, type_: pl.DataType) -> Values:
    values = column.cast(type_).to_numpy()
    if type_.is_float():
        return np.bincount(places, weights=values, minlength=len(counts))
    sums = np.zeros(len(counts), dtype=np.int64)
    np.add.at(sums, places, values)
    return sums


def _dense_least(column: pl.Series, places: Integers, counts: Integers, _: pl.DataType) -> Values:
    found = np.full(len(counts), FOREVER, dtype=np.int64)
    np.minimum.at(found, places, column.cast(pl.Int64).to_numpy())
    return found


def _dense_greatest(column: pl.Series, places: Integers, counts: Integers, _: pl.DataType) -> Values:
    found = np.full(len(counts), NEVER, dtype=np.int64)
    np.maximum.at(found, places, column.cast(pl.Int64).to_numpy())
    return found


def _is_number(given: pl.DataType) -> bool:
    return given.is_float() or given.is_signed_integer()


def _is_discrete(given: pl.DataType) -> bool:
    # Fractions do not fit: NaN is neither least nor greatest.
    return given.is_signed_integer() or given == pl.Datetime("us")


COUNT = Operation(lambda column, type_: column.count().cast(type_), lambda _: True, _dense_counts)
TOTAL = Operation(_total, _is_number, _dense_sums, operator.sub)
SUM = Operation(_sum, _is_number, _dense_sums)  # no way to retract: where zero is left, values may be left or none
LEAST = Operation(lambda column, type_: column.min().cast(type_), _is_discrete, _dense_least)
GREATEST = Operation(lambda column, type_: column.max().cast(type_), _is_discrete, _dense_greatest)


@dataclass(frozen=True, slots=True)
class Reduction:
    """An operation on a column, and the name and type of its result. Without a column it counts tuples."""

    name: str
    operation: Operation
    column: str | None
    type: pl.DataType

    def expression(self) -> pl.Expr:
        if self.column is None:
            return pl.len().cast(self.type).alias(self.name)
        return self.operation.expression(pl.col(self.column), self.type).alias(self.name)

    def fits(self, page: pl.DataFrame) -> bool:
        """Whether the column has a dense form."""
        if self.column is None:
            return True
        column = page.get_column(self.column)
        return not column.null_count() and self.operation.dense is not None and self.operation.fits(column.dtype)

    def dense(self, page: pl.DataFrame, places: Integers, counts: Integers) -> Values:
        if self.column is None:
            return counts
        assert self.operation.dense is not None
        return self.operation.dense(page.get_column(self.column), places, counts, self.type)
