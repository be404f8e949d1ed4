"""Reductions of a column to one value per group, by a Polars expression or in an array indexed by group.

| operation | value | without values | columns with a dense form |
|---|---|---|---|
| COUNT | number of values that are not NULL | 0 | all |
| SUM | sum | NULL | numbers |
| TOTAL | sum | 0 | numbers |
| LEAST, GREATEST | least, greatest value | NULL | integers, times |

The dense form, an array with an entry per group, needs a column without NULLs and an operation that defines one.
Otherwise the groups are hashed.
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

    `expression` computes the value of one group. `dense` computes the values of all groups from the column, the group
    number of each row and the number of rows of each group, for the column types that `fits` accepts; None: the
    operation has no dense form. `retract` subtracts a merged value again; None: that is not possible.
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


def _dense_extremes(choose: np.ufunc, start: int) -> Dense:
    def dense(column: pl.Series, places: Integers, counts: Integers, _: pl.DataType) -> Values:
        found = np.full(len(counts), start, dtype=np.int64)
        choose.at(found, places, column.cast(pl.Int64).to_numpy())
        return found

    return dense


def _is_number(dtype: pl.DataType) -> bool:
    return dtype.is_float() or dtype.is_signed_integer()


def _is_discrete(dtype: pl.DataType) -> bool:
    # Fractions do not fit: NaN is neither least nor greatest.
    return dtype.is_signed_integer() or dtype == pl.Datetime("us")


COUNT = Operation(lambda column, type_: column.count().cast(type_), lambda _: True, _dense_counts)
TOTAL = Operation(_total, _is_number, _dense_sums, operator.sub)
SUM = Operation(_sum, _is_number, _dense_sums)  # cannot retract: a sum of zero may be left by values or by none
LEAST = Operation(lambda column, type_: column.min().cast(type_), _is_discrete, _dense_extremes(np.minimum, FOREVER))
GREATEST = Operation(lambda column, type_: column.max().cast(type_), _is_discrete, _dense_extremes(np.maximum, NEVER))


@dataclass(frozen=True, slots=True)
class Reduction:
    """An operation on a column, with the name and type of its result. Without a column it counts tuples."""

    name: str
    operation: Operation
    column: str | None
    type: pl.DataType

    def expression(self) -> pl.Expr:
        if self.column is None:
            return pl.len().cast(self.type).alias(self.name)
        return self.operation.expression(pl.col(self.column), self.type).alias(self.name)

    def fits(self, page: pl.DataFrame) -> bool:
        """True if `dense` can reduce the column of this page."""
        if self.column is None:
            return True
        column = page.get_column(self.column)
        return not column.null_count() and self.operation.dense is not None and self.operation.fits(column.dtype)

    def dense(self, page: pl.DataFrame, places: Integers, counts: Integers) -> Values:
        if self.column is None:
            return counts
        assert self.operation.dense is not None
        return self.operation.dense(page.get_column(self.column), places, counts, self.type)
