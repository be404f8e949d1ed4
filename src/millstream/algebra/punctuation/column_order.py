"""Columns as numbers that keep order and equality, so that searches of any type run in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.punctuation.lookup import Lookup
from millstream.errors import PatternError

_COMPARISONS: dict[tuple[bool, bool], Callable[..., Any]] = {
    (True, True): np.less,
    (True, False): np.less_equal,
    (False, True): np.greater,
    (False, False): np.greater_equal,
}


def canonical(series: pl.Series) -> pl.Series:
    """Cast to one type per kind of value (64 bits, microseconds, strings), so that columns of a kind can be joined."""
    dtype = series.dtype
    if dtype.is_integer():
        return series.cast(pl.Int64)
    if dtype.is_float():
        return series.cast(pl.Float64)
    if isinstance(dtype, pl.Datetime):
        return series.cast(pl.Datetime("us"))
    if isinstance(dtype, pl.Duration):
        return series.cast(pl.Duration("us"))
    return series.cast(pl.String) if isinstance(dtype, pl.Categorical | pl.Enum) else series


class Keys:
    """The distinct values of a column, for lookups; `codes` has the index of the distinct value at each place."""

    __slots__ = ("_dtype", "_lookup", "_seed", "_texts", "_values", "codes")

    def __init__(self, column: pl.Series) -> None:
        self._dtype = column.dtype
        self._lookup: Lookup | None = None
        self._texts: pl.Series | None = None
        if column.dtype == pl.String:
            # Texts are looked up by their hashes, with a seed under which no two of them collide.
            self._seed = next(seed for seed in count() if self._set_texts(column, seed))
        else:
            self._values, codes = np.unique(_numbers(column)[0], return_inverse=True)
            self.codes: Integers = codes.astype(np.int64)

    def _set_texts(self, column: pl.Series, seed: int) -> bool:
        self._values, first, codes = np.unique(_hashes(column, seed), return_index=True, return_inverse=True)
        self._texts, self.codes = column.gather(first), codes.astype(np.int64)
        return bool((self._texts.gather(self.codes) == column).all())

    def __len__(self) -> int:
        return len(self._values)

    def find(self, column: pl.Series) -> Integers:
        """For each value the index of the distinct value that it equals, or -1."""
        if not _comparable(column, self._dtype):
            return np.full(column.len(), -1, dtype=np.int64)
        if self._texts is None:
            numbers, valid = _numbers(column)
            found = self._find(numbers)
            return found if valid.all() else np.where(valid, found, -1)
        found = self._find(_hashes(column, self._seed))
        same = (self._texts.gather(np.maximum(found, 0)) == column).fill_null(False).to_numpy()
        return np.where(same, found, -1)

    def _find(self, numbers: npt.NDArray[np.generic]) -> Integers:
        many = self._lookup is not None or 2 * len(numbers) > len(self._values)
        if many and _whole(numbers) and _whole(self._values):
            if self._lookup is None:
                self._lookup = Lookup(self._values.astype(np.int64, copy=False))
            return self._lookup.find(numbers.astype(np.int64, copy=False))
        place = np.minimum(np.searchsorted(self._values, numbers), len(self._values) - 1)
        return np.where(self._values[place] == numbers, place, -1)


class Bounds:
    """The distinct values of a column in ascending order, for comparisons; `codes` as in `Keys`."""

    __slots__ = ("_dtype", "_values", "codes")

    def __init__(self, column: pl.Series) -> None:
        self._dtype = column.dtype
        self._values: npt.NDArray[np.generic] | pl.Series
        if column.dtype == pl.String:
            self._values = column.unique().sort()
            codes = self._values.search_sorted(column).to_numpy()
        else:
            self._values, codes = np.unique(_numbers(column)[0], return_inverse=True)
        self.codes: Integers = codes.astype(np.int64)

    def __len__(self) -> int:
        return len(self._values)

    def needed(self, column: pl.Series, *, upper: bool, strict: bool) -> Integers:
        """For each value the lowest rank of a bound that it lies within, or `len(self)` if there is none. Ranks count
        up from the weakest bound. A value equal to the bound lies within it only if not `strict`."""
        size = len(self._values)
        if not _comparable(column, self._dtype):
            return np.full(column.len(), size, dtype=np.int64)
        side: Literal["left", "right"] = "right" if strict == upper else "left"
        if isinstance(self._values, pl.Series):
            valid = column.is_not_null().to_numpy()
            place = self._values.search_sorted(column.fill_null(""), side=side).to_numpy().astype(np.int64)
        else:
            numbers, valid = _numbers(column)
            place = np.searchsorted(self._values, numbers, side=side)
        return np.where(valid, place if upper else size - place, size)

    def within(self, column: pl.Series, bounds: Integers, *, upper: bool, strict: bool) -> Mask:
        """Mask of the values that lie within their bound. `bounds`: a code for each value, or one for all."""
        if isinstance(self._values, pl.Series) or not _comparable(column, self._dtype):
            ranks = bounds if upper else len(self._values) - 1 - bounds
            return self.needed(column, upper=upper, strict=strict) <= ranks
        numbers, valid = _numbers(column)
        inside: Mask = _COMPARISONS[upper, strict](numbers, self._values[bounds])
        return inside & valid


def _comparable(column: pl.Series, dtype: pl.DataType) -> bool:
    """False for a column of NULLs only; raise PatternError if values of the two types cannot be compared."""
    if column.dtype == pl.Null:
        return False
    if _kind(column.dtype) != _kind(dtype):
        raise PatternError(
            "M4010",
            f"a pattern with values of type {dtype} meets column '{column.name}' of type {column.dtype}",
            hint="Create patterns with parse_pattern, which checks them against the schema.",
        )
    return True


def _whole(numbers: npt.NDArray[np.generic]) -> bool:
    return np.issubdtype(numbers.dtype, np.integer)


def _hashes(texts: pl.Series, seed: int) -> Integers:
    return texts.hash(seed).to_numpy().view(np.int64)


def _kind(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "number"
    if dtype in (pl.Date, pl.Datetime):
        return "time"
    return str(dtype.base_type())


def _numbers(column: pl.Series) -> tuple[npt.NDArray[np.generic], Mask]:
    """The values as NumPy numbers in the same order, and a mask of those that are neither NULL nor NaN."""
    numbers = column
    if column.dtype.is_temporal():
        # A date compares with timestamps as its midnight.
        numbers = (column.cast(pl.Datetime("us")) if column.dtype == pl.Date else canonical(column)).cast(pl.Int64)
    elif column.dtype == pl.Boolean:
        numbers = column.cast(pl.Int8)
    elif column.dtype in (pl.Int128, pl.UInt64):
        numbers = column.cast(pl.Float64)  # only their order relative to BIGINT values matters
    if numbers.dtype.is_float():
        floats = numbers.fill_null(float("nan")).to_numpy()
        return floats, ~np.isnan(floats)
    if not numbers.null_count():
        return numbers.to_numpy(), np.ones(numbers.len(), dtype=np.bool_)
    return numbers.fill_null(0).to_numpy(), numbers.is_not_null().to_numpy()
