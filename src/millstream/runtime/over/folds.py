"""Partial results of aggregates as arrays: a value for each tuple, and a merge of the values of neighbours.

| fold | of | arrays | merge |
|---|---|---|---|
| `Sums` | COUNT, SUM, AVG | numbers; 0 for NULL | add |
| `Extremes` | MIN, MAX | values; what is beyond all others for NULL | minimum, maximum |
| `Moments` | VAR, STDDEV | count, mean, sum of squared distances from the mean | that of Chan, Golub and LeVeque |
| `Linear` | DECAY_SUM | factor and summand of a map `s → f * s + d` | composition |
| `Boundary` | FIRST, LAST | whether there is a value, whether it is not NULL, the value | the left or the right one |

With FILTER the value of a tuple that is left out is that of no tuple.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.schema import FOREVER, NEVER
from millstream.runtime.over import scans
from millstream.runtime.over.scans import Values

Arrays = tuple[Values, ...]


class _Beyond:
    """Greater, or less, than every text."""

    __slots__ = ("_greater",)

    def __init__(self, greater: bool) -> None:
        self._greater = greater

    def __ge__(self, other: object) -> bool:
        return self._greater or self is other

    def __le__(self, other: object) -> bool:
        return not self._greater or self is other


TOP, BOTTOM = _Beyond(True), _Beyond(False)


@dataclass(frozen=True, slots=True)
class Fold(ABC):
    """The partial result of some calls. `column` is None for `*`; only tuples in which `filter` is true are taken."""

    column: str | None
    filter: str | None
    type: pl.DataType

    @property
    def original(self) -> Fold:
        """The fold of the calls."""
        return self

    @property
    @abstractmethod
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The types of the arrays."""

    @abstractmethod
    def lift(self, tuples: pl.DataFrame) -> Arrays:
        """Return the partial result of each tuple."""

    @abstractmethod
    def merge(self, left: Arrays, right: Arrays) -> Arrays:
        """Return the partial results of tuples on the left and tuples on the right of them."""

    def running(self, values: Arrays, starts: Places) -> Arrays:
        """Return for each tuple the partial result of its segment up to it."""
        return scans.doubled(self.merge, values, starts)

    def backwards(self, values: Arrays, starts: Places) -> Arrays:
        """Return for each tuple the partial result of its segment from it on."""
        turned = scans.turned(starts, len(values[0]))
        made = scans.doubled(lambda a, b: self.merge(b, a), tuple(v[::-1] for v in values), turned)
        return tuple(value[::-1] for value in made)

    def extend(self, before: Arrays, values: Arrays, places: Places) -> None:
        """Merge partial results with those of the tuples that follow them, at these places of the values."""
        merged = self.merge(before, tuple(value[places] for value in values))
        for value, own in zip(values, merged, strict=True):
            value[places] = own

    def chosen(self, tuples: pl.DataFrame) -> Mask | None:
        """Return the tuples that FILTER takes; None: all."""
        return None if self.filter is None else tuples.get_column(self.filter).fill_null(False).to_numpy()

    def argument(self, tuples: pl.DataFrame) -> pl.Series:
        """Return the argument, NULL where FILTER does not take the tuple."""
        assert self.column is not None
        column, chosen = tuples.get_column(self.column), self.chosen(tuples)
        return column if chosen is None else column.set(pl.Series(~chosen), None)


class _Simple(Fold):
    """One array, merged by a ufunc."""

    __slots__ = ()

    @property
    @abstractmethod
    def ufunc(self) -> np.ufunc: ...

    def merge(self, left: Arrays, right: Arrays) -> Arrays:
        return (self.ufunc(left[0], right[0]),)

    def running(self, values: Arrays, starts: Places) -> Arrays:
        return (scans.running(self.ufunc, values[0], starts),)

    def backwards(self, values: Arrays, starts: Places) -> Arrays:
        return (scans.backwards(self.ufunc, values[0], starts),)


@dataclass(frozen=True, slots=True)
class Sums(_Simple):
    """`of`: count (values that are not NULL, or tuples), total (values), or high (high halves of integers)."""

    of: str

    @property
    def ufunc(self) -> np.ufunc:
        return np.add

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return (np.dtype(np.float64 if self.of == "total" and self.type.is_float() else np.int64),)

    def lift(self, tuples: pl.DataFrame) -> Arrays:
        if self.column is None:
            chosen = self.chosen(tuples)
            return (np.ones(tuples.height, np.int64) if chosen is None else chosen.astype(np.int64),)
        column = self.argument(tuples)
        if self.of == "count":
            known = np.ones(len(column), np.int64) if not column.null_count() else column.is_not_null().to_numpy()
            return (known.astype(np.int64, copy=False),)
        values = column.cast(self.type)
        if values.null_count():
            values = values.fill_null(0)
        numbers = values.to_numpy().astype(self.dtypes[0], copy=False)
        return (numbers >> 32 if self.of == "high" else numbers,)


@dataclass(frozen=True, slots=True)
class Extremes(_Simple):
    least: bool

    @property
    def ufunc(self) -> np.ufunc:
        if self.type.is_float():
            return np.fmin if self.least else np.fmax
        return np.minimum if self.least else np.maximum

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return (stored_as(self.type),)

    def lift(self, tuples: pl.DataFrame) -> Arrays:
        column = self.argument(tuples)
        nulls = column.null_count() > 0
        if self.type == pl.String:
            texts = as_array(column, pl.String())
            if nulls:
                texts[column.is_null().to_numpy()] = TOP if self.least else BOTTOM
            return (texts,)
        if self.type.is_float():
            # NaN is neither least nor greatest, so it can take the place of NULL.
            return ((column.fill_null(float("nan")) if nulls else column).to_numpy().astype(np.float64, copy=False),)
        numbers = column.cast(pl.Int64)
        return ((numbers.fill_null(FOREVER if self.least else NEVER) if nulls else numbers).to_numpy(),)


@dataclass(frozen=True, slots=True)
class Moments(Fold):
    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.float64)

    def lift(self, tuples: pl.DataFrame) -> Arrays:
        column = self.argument(tuples).cast(pl.Float64)
        known = column.is_not_null().to_numpy().astype(np.int64)
        return known, column.fill_null(0.0).to_numpy(), np.zeros(len(column))

    def merge(self, left: Arrays, right: Arrays) -> Arrays:
        count = left[0] + right[0]
        apart = right[1] - left[1]
        share = right[0] / np.maximum(count, 1)
        # The mean of no values is of no account.
        mean = np.where(right[0] == 0, left[1], np.where(left[0] == 0, right[1], left[1] + apart * share))
        between = np.where((left[0] == 0) | (right[0] == 0), 0.0, apart * apart * (left[0] * share))
        return count, mean, left[2] + right[2] + between


@dataclass(frozen=True, slots=True)
class Linear(Fold):
    """Each value maps a sum s to `factor * s + weight * value`; NULL leaves it as it is."""

    factor: float
    weight: float

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return np.dtype(np.float64), np.dtype(np.float64)

    def lift(self, tuples: pl.DataFrame) -> Arrays:
        column = self.argument(tuples).cast(pl.Float64)
        known = column.is_not_null().to_numpy()
        return np.where(known, self.factor, 1.0), self.weight * column.fill_null(0.0).to_numpy()

    def merge(self, left: Arrays, right: Arrays) -> Arrays:
        return left[0] * right[0], right[0] * left[1] + right[1]


@dataclass(frozen=True, slots=True)
class Boundary(Fold):
    last: bool

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return np.dtype(np.bool_), np.dtype(np.bool_), stored_as(self.type)

    def lift(self, tuples: pl.DataFrame) -> Arrays:
        assert self.column is not None
        column, chosen = tuples.get_column(self.column), self.chosen(tuples)
        known = np.ones(len(column), np.bool_) if chosen is None else chosen
        return known, column.is_not_null().to_numpy(), as_array(column, self.type)

    def merge(self, left: Arrays, right: Arrays) -> Arrays:
        near, far = (right, left) if self.last else (left, right)
        return near[0] | far[0], *(np.where(near[0], a, b) for a, b in zip(near[1:], far[1:], strict=True))


# --- columns and arrays -----------------------------------------------------------------------------------------------


def stored_as(type_: pl.DataType) -> np.dtype[Any]:
    """The type of an array of values of a type: numbers as such, times as integers."""
    if type_ == pl.String or type_.is_nested():
        return np.dtype(object)
    return np.dtype(np.float64 if type_.is_float() else np.int64)


def as_array(column: pl.Series, type_: pl.DataType) -> Values:
    """Return a column as an array of its own; NULL becomes any value."""
    dtype = stored_as(type_)
    if dtype.kind == "O":
        made = np.empty(len(column), dtype=object)
        made[:] = column.to_list()
        return made
    numbers = column.cast(pl.Float64).fill_null(0.0) if dtype == np.float64 else column.cast(pl.Int64)
    return numbers.fill_null(0).to_numpy().copy() if numbers.null_count() else numbers.to_numpy().copy()


def as_column(values: Values, type_: pl.DataType, absent: Mask | None = None) -> pl.Series:
    """Return an array as a column of a type; NULL where a value is absent."""
    if absent is not None and not absent.any():
        absent = None
    if values.dtype == object:
        kept = values.tolist() if absent is None else [None if a else v for v, a in zip(values, absent, strict=True)]
        return pl.Series(kept, dtype=type_)
    if absent is not None:
        values = np.where(absent, 0, values)
    made = pl.Series(values)
    if made.dtype != type_:
        made = made.cast(pl.Int32).cast(type_) if type_ == pl.Date() else made.cast(type_)
    return made if absent is None else made.set(pl.Series(absent), None)
