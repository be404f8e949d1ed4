"""Indexes of local tables and windows: rows by the values of columns, or in the order of a column.

An index has the rows themselves, by their numbers: a lookup reads nothing else. A row that is changed in place keeps
the values of the columns that indexes have.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

Row = tuple[Any, ...]
"""Compiled code has lists instead, in the tables that it alone fills."""
Bucket = dict[int, Row]
"""Rows by number, in the order of their numbers."""
NO_BUCKET: Bucket = {}


class Index:
    """Rows by the values of some columns. A row with a NULL among them is not there, since no equality holds for it.

    Most indexes have one row for a key: `rows` has it, and `numbers` its number. `several` has the rows of other keys.
    """

    __slots__ = ("_key", "_single", "numbers", "rows", "several")

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._key: Callable[[Row], Any] = itemgetter(*columns)
        self._single = len(columns) == 1
        self.rows: dict[Any, Row] = {}
        self.numbers: dict[Any, int] = {}
        self.several: dict[Any, Bucket] = {}

    def all(self, key: Any) -> Iterable[Row]:
        """The rows of a key, in the order of the table."""
        row = self.rows.get(key)
        return self.several.get(key, NO_BUCKET).values() if row is None else (row,)

    def numbered(self, key: Any) -> Iterable[tuple[int, Row]]:
        """The same, with their numbers."""
        row = self.rows.get(key)
        return self.several.get(key, NO_BUCKET).items() if row is None else ((self.numbers[key], row),)

    def has(self, key: Any) -> bool:
        return key in self.rows or key in self.several

    def add(self, number: int, row: Row) -> None:
        key = self._key(row)
        if key is None or (not self._single and None in key):
            return
        if key in self.rows:
            self.several[key] = {self.numbers.pop(key): self.rows.pop(key)}
        bucket = self.several.get(key)
        if bucket is None:
            self.rows[key], self.numbers[key] = row, number
            return
        later = number > next(reversed(bucket))
        bucket[number] = row
        if not later:
            self.several[key] = dict(sorted(bucket.items()))

    def remove(self, number: int, row: Row) -> None:
        key = self._key(row)
        bucket = self.several.get(key)
        if bucket is None:
            if self.rows.pop(key, None) is not None:
                del self.numbers[key]
            return
        del bucket[number]
        if len(bucket) == 1:
            ((self.numbers[key], self.rows[key]),) = self.several.pop(key).items()

    def replace(self, number: int, old: Row, new: Row) -> None:
        key = self._key(old)
        if key != self._key(new):
            self.remove(number, old)
            self.add(number, new)
        elif key in self.rows:
            self.rows[key] = new
        elif (bucket := self.several.get(key)) is not None:
            bucket[number] = new

    def clear(self) -> None:
        for held in (self.rows, self.numbers, self.several):
            held.clear()


@dataclass(frozen=True, slots=True)
class Order:
    """The column of a sorted index, by position."""

    column: int
    descending: bool


class SortedIndex:
    """Rows in the order of `ORDER BY`: NULLs last, NaN after all numbers, equal values in the order of the table. A
    descending index is read from the end."""

    __slots__ = ("_column", "_nans", "_nulls", "_numbers", "_rows", "_sign", "_value", "_values")

    def __init__(self, order: Order) -> None:
        self._column, self._sign = order.column, -1 if order.descending else 1
        self._value: Callable[[Row], Any] = itemgetter(order.column)
        self._values: list[Any] = []
        self._numbers: list[int] = []
        """Those of a descending index are negative, so that rows of one value are in order of their numbers here."""
        self._rows: list[Row] = []
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
            self._rows.insert(at, row)

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
            del self._values[at], self._numbers[at], self._rows[at]

    def replace(self, number: int, old: Row, new: Row) -> None:
        value = old[self._column]
        if value != new[self._column]:
            self.remove(number, old)
            self.add(number, new)
        elif value is None:
            self._nulls[number] = new
        else:
            at = self._place(number, value)
            self._values[at], self._rows[at] = new[self._column], new

    def clear(self) -> None:
        for held in (self._values, self._numbers, self._rows, self._nans, self._nulls):
            held.clear()

    def beyond(self, op: str, bound: Any) -> Iterable[tuple[int, Row]]:
        """The rows whose values are less or greater than a bound, with their numbers; neither NULL nor NaN is."""
        if bound is None:
            return ()
        at = (bisect_left if op in ("<", ">=") else bisect_right)(self._values, bound)
        part = slice(at) if op in ("<", "<=") else slice(at, None)
        rows = self._rows[part]
        return zip([self._sign * number for number in self._numbers[part]], rows, strict=True) if rows else ()

    def first(self) -> Row | None:
        """The first row in order."""
        if self._rows and (self._sign > 0 or not self._nans):
            return self._rows[0 if self._sign > 0 else -1]
        return next(iter(self._all()), None)

    def first_rows(self, limit: int | None, offset: int | None) -> list[Row]:
        """The first rows in order, without those before an offset."""
        return self._first(self._rows, limit, offset, lambda row: row)

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
        return [*self._rows, *nans, *nulls] if self._sign > 0 else [*nans, *reversed(self._rows), *nulls]


Indexed = tuple[int, ...] | Order
"""The columns of an index, by position, or the order of a sorted one."""


def new_index(of: Indexed) -> Index | SortedIndex:
    return SortedIndex(of) if isinstance(of, Order) else Index(of)
