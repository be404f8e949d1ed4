"""SUM, AVG and MAX written in Python: one tuple at a time, and of whole columns."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from millstream.control.mill import LocalMill


class Sum:
    def initialize(self, x: int) -> None:
        self.total = x

    def iterate(self, x: int) -> None:
        self.total += x

    def expire(self, x: int) -> None:
        self.total -= x

    def terminate(self) -> int:
        return self.total


class Average:
    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.total = self.count = 0

    def iterate(self, x: int) -> None:
        self.total, self.count = self.total + x, self.count + 1

    def terminate(self) -> float:
        return self.total / self.count


class Highest:
    """Candidates for later maxima, each with the number of smaller values before it that it outlives."""

    def __init__(self) -> None:
        self.held: list[list[int]] = []

    def iterate(self, x: int) -> None:
        count = 0
        while self.held and self.held[-1][0] <= x:
            count += self.held.pop()[1] + 1
        self.held.append([x, count])

    def expire(self, _: int) -> None:
        if self.held[0][1]:
            self.held[0][1] -= 1
        else:
            self.held.pop(0)

    def terminate(self) -> int:
        return self.held[0][0]


class ColumnSum:
    def __init__(self) -> None:
        self.total = 0

    def iterate(self, x: pl.Series) -> pl.Series:
        sums = x.cum_sum() + self.total
        self.total = sums[-1]
        return sums


class ArrowSum:
    def __init__(self) -> None:
        self.total = 0

    def iterate(self, x: pa.Array) -> pa.Array:
        sums = pc.add(pc.cumulative_sum(x), self.total)
        self.total = sums[-1].as_py()
        return sums


def registered(mill: LocalMill) -> LocalMill:
    mill.aggregate(Sum, name="my_sum", ignore_nulls=True)
    mill.aggregate(Average, name="my_avg", ignore_nulls=True)
    mill.aggregate(Highest, name="my_max", arguments=["BIGINT"], ignore_nulls=True)
    return mill
