"""Indexes in the order of a column: of a whole table, or of the rows of each key.

A `SortedIndex` has the order of `ORDER BY`. A `RangeIndex` is for ranges of integers among the rows of a key.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from operator import itemgetter
from typing import Any

from millstream.runtime.program.index import Bucket, Index, Row


@dataclass(frozen=True, slots=True)
class Order:
    """The column of a sorted index, by position."""

    column: int
    descending: bool


class SortedIndex:
    """Rows in the order of `ORDER BY`: NULLs last, NaN after all numbers, equal values in the order of the table. A
    descending index is read from the end."""

    __slots__ = ("_column", "_nans", "_nulls", "_numbers", "_sign", "_value", "_values", "listed")

    def __init__(self, order: Order) -> None:
        self._column, self._sign = order.column, -1 if order.descending else 1
        self._value: Callable[[Row], Any] = itemgetter(order.column)
        self._values: list[Any] = []
        self._numbers: list[int] = []
        """Those of a descending index are negative, so that rows of one value are in order of their numbers here."""
        self.listed: list[Row] = []
        """The rows with values that are neither NULL nor NaN, the least one first."""
        self._nans: Bucket = {}
        self._nulls: Bucket = {}

    def add(self, number: int, row: Row) -> None:
        value = row[self._column]
        if value is None:
            self._nulls[number] = row
        elif value != value:
            self._nans[number] = row
        else:
            values, numbers, signed = self._values, self._numbers, self._sign * number
            at = bisect_left(values, value)
            if at < len(values) and values[at] == value and numbers[at] < signed:
                at = bisect_left(numbers, signed, at, bisect_right(values, value, at))
            values.insert(at, value)
            numbers.insert(at, signed)
            self.listed.insert(at, row)

    def _place(self, number: int, value: Any) -> int:
        """The place of a row in the lists."""
        values, numbers, signed = self._values, self._numbers, self._sign * number
        at = bisect_left(values, value)
        return at if numbers[at] == signed else bisect_left(numbers, signed, at, bisect_right(values, value, at))

    def remove(self, number: int, row: Row) -> None:
        value = row[self._column]
        if value is None:
            del self._nulls[number]
        elif value != value:
            del self._nans[number]
        else:
            at = self._place(number, value)
            del self._values[at], self._numbers[at], self.listed[at]

    def replace(self, number: int, old: Row, new: Row) -> None:
        value = old[self._column]
        if value != new[self._column]:
            self.remove(number, old)
            self.add(number, new)
        elif value is None:
            self._nulls[number] = new
        else:
            at = self._place(number, value)
            self._values[at], self.listed[at] = new[self._column], new

    def clear(self) -> None:
        for held in (self._values, self._numbers, self.listed, self._nans, self._nulls):
            held.clear()

    def beyond(self, op: str, bound: Any) -> Iterable[tuple[int, Row]]:
        """The rows whose values are less or greater than a bound, with their numbers; neither NULL nor NaN is."""
        if bound is None:
            return ()
        part = self._part(op, bound)
        rows = self.listed[part]
        return zip([self._sign * number for number in self._numbers[part]], rows, strict=True) if rows else ()

    def rows_beyond(self, op: str, bound: Any) -> Sequence[Row]:
        """The same, without their numbers."""
        return () if bound is None else self.listed[self._part(op, bound)]

    def _part(self, op: str, bound: Any) -> slice:
        at = (bisect_left if op in ("<", ">=") else bisect_right)(self._values, bound)
        return slice(at) if op in ("<", "<=") else slice(at, None)

    def first(self) -> Row | None:
        """The first row in order."""
        if self.listed and (self._sign > 0 or not self._nans):
            return self.listed[0 if self._sign > 0 else -1]
        return next(iter(self._all()), None)

    def first_rows(self, limit: int | None, offset: int | None) -> list[Row]:
        """The first rows in order, without those before an offset."""
        return self._first(self.listed, limit, offset, lambda row: row)

    def first_values(self, limit: int | None, offset: int | None) -> list[Any]:
        """The values of the column of these rows."""
        return self._first(self._values, limit, offset, self._value)

    def _first(self, listed: list[Any], limit: int | None, offset: int | None, of: Callable[[Row], Any]) -> list[Any]:
        start = offset if offset and offset > 0 else 0
        stop = None if limit is None else start + limit if limit > 0 else start
        if self._nans or self._nulls:
            return [of(row) for row in self._all()[start:stop]]
        if self._sign > 0:
            return listed[start:stop]
        return listed[-1 - start : None if stop is None else -1 - stop : -1]

    def _all(self) -> list[Row]:
        """All rows in order."""
        nans, nulls = ([row for _, row in sorted(some.items())] for some in (self._nans, self._nulls))
        return [*self.listed, *nans, *nulls] if self._sign > 0 else [*nans, *reversed(self.listed), *nulls]


@dataclass(frozen=True, slots=True)
class Range:
    """The columns of the key of a `RangeIndex`, and the column that its rows are sorted by, by position."""

    key: tuple[int, ...]
    column: int


Entry = tuple[int, int, Row]
"""A value, the number of the row that has it, and the row."""


class RangeIndex:
    """Rows of each key in the order of an integer column. Those with a NULL in one of these columns are not there."""

    __slots__ = ("_column", "_key", "_single", "buckets")

    def __init__(self, of: Range) -> None:
        self._key: Callable[[Row], Any] = itemgetter(*of.key)
        self._single, self._column = len(of.key) == 1, of.column
        self.buckets: dict[Any, list[Entry]] = {}

    def all(self, key: Any) -> Sequence[Entry]:
        """The rows of a key, the least value first. The list is that of the index."""
        return self.buckets.get(key, ())

    def beyond(self, key: Any, op: str, bound: Any) -> Sequence[Entry]:
        """The rows of a key whose values are less or greater than a bound."""
        bucket = self.buckets.get(key)
        if bucket is None or bound is None:
            return ()
        if op in ("<", ">="):
            at = bisect_left(bucket, (bound,))
        else:
            at = bisect_right(bucket, (bound, inf))
        return bucket[:at] if op in ("<", "<=") else bucket[at:]

    def _place(self, row: Row) -> tuple[Any, int] | None:
        """The key and the value of a row; None if the index does not have it."""
        key, value = self._key(row), row[self._column]
        missing = key is None or value is None or (not self._single and None in key)
        return None if missing else (key, value)

    def add(self, number: int, row: Row) -> None:
        if (place := self._place(row)) is None:
            return
        key, value = place
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets[key] = [(value, number, row)]
        else:
            insort(bucket, (value, number, row))

    def remove(self, number: int, row: Row) -> None:
        if (place := self._place(row)) is None:
            return
        key, value = place
        bucket = self.buckets[key]
        if len(bucket) == 1:
            del self.buckets[key]
        else:
            del bucket[bisect_left(bucket, (value, number))]

    def replace(self, number: int, old: Row, new: Row) -> None:
        self.remove(number, old)
        self.add(number, new)

    def clear(self) -> None:
        self.buckets.clear()


Indexed = tuple[int, ...] | Order | Range
"""The columns of an index, by position, or the order of a sorted one."""
AnyIndex = Index | SortedIndex | RangeIndex


def new_index(of: Indexed) -> AnyIndex:
    match of:
        case Order():
            return SortedIndex(of)
        case Range():
            return RangeIndex(of)
    return Index(of)
