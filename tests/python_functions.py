"""Functions in a module that Spark's workers import."""

import polars as pl

import millstream as ms


@ms.function(name="spark_half")
def half(x: float) -> float:
    return x / 2


@ms.function(name="spark_triple", arguments=["DOUBLE"], returns="DOUBLE")
def triple(x: pl.Series) -> pl.Series:
    return x * 3


@ms.aggregate(name="spark_mean")
class Mean:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def iterate(self, x: float) -> None:
        self.total, self.count = self.total + x, self.count + 1

    def expire(self, x: float) -> None:
        self.total, self.count = self.total - x, self.count - 1

    def terminate(self) -> float:
        return self.total / self.count
