"""Variance and standard deviation: the count, the mean and the sum of squared distances from the mean.

Two bags merge without cancellation (Chan, Golub and LeVeque): means by their counts; to the sums of squares comes the
squared distance of each mean from the common mean, times its count.

| function | result | of one value | of no values |
|---|---|---|---|
| VAR_POP, STDDEV_POP | m / n, its root | 0 | NULL |
| VAR_SAMP, STDDEV_SAMP | m / (n - 1), its root | NULL | NULL |
"""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.aggregate.function import AggregateFunction, Part
from millstream.algebra.aggregate.reduction import COUNT, TOTAL, Operation, Values, dense_sums, is_number
from millstream.algebra.arrays import Integers
from millstream.algebra.types import Type


def _deviations(column: pl.Expr, type_: pl.DataType) -> pl.Expr:
    return column.cast(type_).var(ddof=0) * column.count()


def _mean_of_means(mean: pl.Expr, _: pl.DataType, count: pl.Expr) -> pl.Expr:
    # Differences from one of the means keep the digits that the products of large means would lose.
    one = mean.max()
    return pl.when(count.sum() > 0).then(one + ((mean - one) * count).sum() / count.sum())


def _all_deviations(squares: pl.Expr, type_: pl.DataType, count: pl.Expr, mean: pl.Expr) -> pl.Expr:
    distance = mean - _mean_of_means(mean, type_, count)
    return pl.when(count.sum() > 0).then(squares.sum() + (count * distance * distance).sum())


def _dense_means(column: pl.Series, places: Integers, counts: Integers, type_: pl.DataType) -> Values:
    means: Values = np.divide(dense_sums(column, places, counts, type_), np.maximum(counts, 1))
    return means


def _dense_deviations(column: pl.Series, places: Integers, counts: Integers, type_: pl.DataType) -> Values:
    values = column.cast(type_).to_numpy()
    distances = values - _dense_means(column, places, counts, type_)[places]
    return dense_sums(pl.Series(distances * distances), places, counts, type_)


MEAN = Operation(lambda column, type_: column.cast(type_).mean(), is_number, _dense_means)
DEVIATIONS = Operation(_deviations, is_number, _dense_deviations)
MEAN_OF_MEANS = Operation(_mean_of_means)
ALL_DEVIATIONS = Operation(_all_deviations)


class Variance(AggregateFunction):
    """`freedom` is subtracted from the count: 1 for the variance of a sample, 0 for that of a population."""

    numeric, type = True, Type.DOUBLE

    def __init__(self, name: str, *spellings: str, freedom: int, root: bool = False) -> None:
        self.name, self.spellings = name, spellings
        self._freedom, self._root = freedom, root

    def parts(self, type_: Type) -> tuple[Part, ...]:
        return (
            Part(Type.BIGINT, COUNT, TOTAL, "__count"),
            Part(type_, MEAN, MEAN_OF_MEANS, "__mean", beside=("__count",)),
            Part(type_, DEVIATIONS, ALL_DEVIATIONS, "__squares", beside=("__count", "__mean")),
        )

    def result(self, *parts: pl.Expr) -> pl.Expr:
        count, _, squares = parts
        variance = squares / (count - self._freedom)
        return pl.when(count > self._freedom).then(variance.sqrt() if self._root else variance)


MOMENTS = (
    Variance("VAR_SAMP", "VARIANCE", freedom=1),
    Variance("VAR_POP", freedom=0),
    Variance("STDDEV_SAMP", "STDDEV", freedom=1, root=True),
    Variance("STDDEV_POP", freedom=0, root=True),
)
