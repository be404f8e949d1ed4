"""Reductions of a column to one value per group, by a Polars expression or in an array indexed by group.

| operation | value | without values | columns with a dense form |
|---|---|---|---|
| COUNT | number of values that are not NULL | 0 | all |
| SUM | sum | NULL | numbers |
| TOTAL | sum | 0 | numbers |
| HIGH | sum of `x // 2^32` | 0 | integers |
| LEAST, GREATEST | least, greatest value | NULL | integers, times |

The dense form, an array with an entry per group, needs a column without NULLs and an operation that defines one.
Otherwise the groups are hashed.

A sum of integers is exact modulo 2^64; together with HIGH it tells whether the true sum fits (`sum_fits`). So only the
true sum counts, not the sums of some of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.schema import FOREVER, NEVER

HALF = 1 << 32
_WRAP = 2.0**64
Values = npt.NDArray[np.generic]
Dense = Callable[[pl.Series, Integers, Integers, pl.DataType], Values]


@dataclass(frozen=True, slots=True)
class Operation:
    """One way to reduce a column to a value of a type.

    `expression` computes the value of one group. `dense` computes the values of all groups from the column, the group
    number of each row and the number of rows of each group, for the column types that `fits` accepts; None: the
    operation has no dense form. `expression` also gets the reduction's other columns. With `null_is_value` a value that
    is left out must not become NULL instead.
    """

    expression: Callable[..., pl.Expr]
    fits: Callable[[pl.DataType], bool] = lambda _: False
    dense: Dense | None = None
    null_is_value: bool = False


def _total(column: pl.Expr, type_: pl.DataType) -> pl.Expr:
    return column.cast(type_).sum()


def _sum(column: pl.Expr, type_: pl.DataType) -> pl.Expr:
    return pl.when(column.count() > 0).then(_total(column, type_))


def _dense_counts(_column: pl.Series, _places: Integers, counts: Integers, _type: pl.DataType) -> Values:
    return counts


def dense_sums(column: pl.Series, places: Integers, counts: Integers, type_: pl.DataType) -> Values:
    values = column.cast(type_).to_numpy()
    if type_.is_float():
        return np.bincount(places, weights=values, minlength=len(counts))
    sums = np.zeros(len(counts), dtype=np.int64)
    np.add.at(sums, places, values)
    return sums


def _high(column: pl.Expr, type_: pl.DataType) -> pl.Expr:
    return (column.cast(type_) // HALF).sum()


def _dense_highs(column: pl.Series, places: Integers, counts: Integers, type_: pl.DataType) -> Values:
    values = column.cast(type_).to_numpy()
    if not len(values) or (values.min() >= 0 and values.max() < HALF):
        return np.zeros(len(counts), dtype=np.int64)
    return dense_sums(pl.Series(values >> 32), places, counts, type_)


def sum_fits(total: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Return whether a sum of integers did not wrap. A carry of less than 2^32 joins the high halves, one for each
    value at most; a wrap changes the high half of the sum by a multiple of 2^32."""
    return (total // HALF - high).is_between(0, HALF - 1)


def sums_fit(total: pl.Series, high: pl.Series) -> bool:
    """Return whether none of these sums is NULL or has wrapped.

    >>> sums_fit(pl.Series([5, -1]), pl.Series([0, -1])), sums_fit(pl.Series([-(2**63)]), pl.Series([2**31]))
    (True, False)
    """
    if total.null_count() or high.null_count():
        return False
    carried = (total.to_numpy() >> 32) - high.to_numpy()
    return bool(((carried >= 0) & (carried < HALF)).all())


def _wraps(total: Any, high: Any) -> Any:
    """How often a sum of integers has wrapped, of values, columns or expressions."""
    return (total // HALF - high) // HALF


def true_sum(total: int, high: int) -> int:
    """Return the sum of integers, given what is left of it after wrapping.

    >>> true_sum(-(2**63), 2 * (2**62 >> 32))
    9223372036854775808
    """
    return total - int(_wraps(total, high)) * HALF * HALF


def true_sums(total: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Return the sums of integers as fractions."""
    wraps: pl.Expr = _wraps(total, high)
    return total.cast(pl.Float64) - wraps.cast(pl.Float64) * _WRAP


def quick_true_sums(total: pl.Series, high: pl.Series) -> npt.NDArray[np.float64]:
    """The same of columns without NULLs, without Polars' query planner.

    >>> quick_true_sums(pl.Series([5, -(2**63)]), pl.Series([0, 2**31])).tolist()
    [5.0, 9.223372036854776e+18]
    """
    totals = total.to_numpy()
    made: npt.NDArray[np.float64] = totals.astype(np.float64) - _wraps(totals, high.to_numpy()) * _WRAP
    return made


def _dense_extremes(choose: np.ufunc, start: int) -> Dense:
    def dense(column: pl.Series, places: Integers, counts: Integers, _: pl.DataType) -> Values:
        found = np.full(len(counts), start, dtype=np.int64)
        choose.at(found, places, column.cast(pl.Int64).to_numpy())
        return found

    return dense


def is_number(dtype: pl.DataType) -> bool:
    return dtype.is_float() or dtype.is_signed_integer()


def _is_discrete(dtype: pl.DataType) -> bool:
    # Fractions do not fit: NaN is neither least nor greatest.
    return dtype.is_signed_integer() or dtype == pl.Datetime("us")


COUNT = Operation(lambda column, type_: column.count().cast(type_), lambda _: True, _dense_counts)
TOTAL = Operation(_total, is_number, dense_sums)
SUM = Operation(_sum, is_number, dense_sums)
HIGH = Operation(_high, lambda dtype: dtype.is_signed_integer(), _dense_highs)
LEAST = Operation(lambda column, type_: column.min().cast(type_), _is_discrete, _dense_extremes(np.minimum, FOREVER))
GREATEST = Operation(lambda column, type_: column.max().cast(type_), _is_discrete, _dense_extremes(np.maximum, NEVER))


@dataclass(frozen=True, slots=True)
class Reduction:
    """An operation on a column, and on others beside it, with the name and type of its result. Without a column it
    counts tuples. `filter` names a BOOLEAN column: only tuples in which it is true are reduced."""

    name: str
    operation: Operation
    column: str | None
    type: pl.DataType
    others: tuple[str, ...] = ()
    filter: str | None = None

    def expression(self) -> pl.Expr:
        if self.column is None:
            count = pl.len() if self.filter is None else pl.col(self.filter).sum()
            return count.cast(self.type).alias(self.name)
        column, *others = (self._filtered(name) for name in (self.column, *self.others))
        return self.operation.expression(column, self.type, *others).alias(self.name)

    def _filtered(self, name: str) -> pl.Expr:
        if self.filter is None:
            return pl.col(name)
        if self.operation.null_is_value:
            return pl.col(name).filter(pl.col(self.filter))
        return pl.when(pl.col(self.filter)).then(pl.col(name))

    def fits(self, page: pl.DataFrame) -> bool:
        """True if `dense` can reduce the column of this page."""
        if self.filter is not None:
            return False
        if self.column is None:
            return True
        column = page.get_column(self.column)
        return not column.null_count() and self.operation.dense is not None and self.operation.fits(column.dtype)

    def dense(self, page: pl.DataFrame, places: Integers, counts: Integers) -> Values:
        if self.column is None:
            return counts
        assert self.operation.dense is not None
        return self.operation.dense(page.get_column(self.column), places, counts, self.type)
