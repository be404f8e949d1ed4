"""Local tables and the window of an aggregate: rows by number, in order of arrival, with hash indexes.

A row is a tuple. Numbers only grow, so the order of a table is the order in which its rows came, also after an update.
An index maps the values of its columns to the numbers of the rows that have them; a row with a NULL among them is in
no index, since no equality holds for it. A sorted index has the numbers of all rows in the order of a column.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

Row = tuple[Any, ...]
Bucket = dict[int, None]


class Index:
    """Numbers of rows by the values of some columns."""

    __slots__ = ("_key", "_single", "buckets")

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._key: Callable[[Row], Any] = itemgetter(*columns)
        self._single = len(columns) == 1
        self.buckets: dict[Any, Bucket] = {}

    def add(self, number: int, row: Row) -> None:
        key = self._key(row)
        if not self._is_null(key):
            self.buckets.setdefault(key, {})[number] = None

    def remove(self, number: int, row: Row) -> None:
        key = self._key(row)
        if not self._is_null(key):
            bucket = self.buckets[key]
            del bucket[number]
            if not bucket:
                del self.buckets[key]

    def replace(self, number: int, old: Row, new: Row) -> None:
        if self._key(old) != self._key(new):
            self.remove(number, old)
            self.add(number, new)

    def clear(self) -> None:
        self.buckets.clear()

    def _is_null(self, key: Any) -> bool:
        return key is None if self._single else None in key


@dataclass(frozen=True, slots=True)
class Order:
    """The column of a sorted index, by position."""

    column: int
    descending: bool


class SortedIndex:
    """Numbers of rows in the order of `ORDER BY`: NULLs last, NaN after all numbers, equal values in the order of the
    table. A descending index is read from the end."""

    __slots__ = ("_column", "_nans", "_nulls", "_sign", "entries")

    def __init__(self, order: Order) -> None:
        self._column, self._sign = order.column, -1 if order.descending else 1
        self.entries: list[tuple[Any, int]] = []
        """Values with the numbers of their rows, those of a descending index negative."""
        self._nans: Bucket = {}
        self._nulls: Bucket = {}

    def add(self, number: int, row: Row) -> None:
        value = row[self._column]
        if value is None:
            self._nulls[number] = None
        elif value != value:
            self._nans[number] = None
        else:
            insort(self.entries, (value, self._sign * number))

    def remove(self, number: int, row: Row) -> None:
        value = row[self._column]
        if value is None:
            del self._nulls[number]
        elif value != value:
            del self._nans[number]
        else:
            del self.entries[bisect_left(self.entries, (value, self._sign * number))]

    def replace(self, number: int, old: Row, new: Row) -> None:
        if old[self._column] != new[self._column]:
            self.remove(number, old)
            self.add(number, new)

    def clear(self) -> None:
        self.entries.clear()
        self._nans.clear()
        self._nulls.clear()

    def first(self, rows: dict[int, Row], limit: int | None, offset: int | None) -> list[Row]:
        """The first of these rows, without those before an offset."""
        start = max(offset, 0) if offset else 0
        stop = None if limit is None else start + max(limit, 0)
        if self._nans or self._nulls:
            return [rows[number] for number in self._numbers()[start:stop]]
        entries = self.entries
        if self._sign > 0:
            return [rows[entry[1]] for entry in entries[start:stop]]
        count = len(entries)
        low = 0 if stop is None or stop >= count else count - stop
        return [rows[-entry[1]] for entry in entries[low : count - start if start < count else 0][::-1]]

    def _numbers(self) -> list[int]:
        """The numbers of all rows in order."""
        nans, nulls = sorted(self._nans), sorted(self._nulls)
        if self._sign > 0:
            return [*(number for _, number in self.entries), *nans, *nulls]
        return [*nans, *(-number for _, number in reversed(self.entries)), *nulls]


Indexed = tuple[int, ...] | Order
"""The columns of an index, by position, or the order of a sorted one."""


def new_index(of: Indexed) -> Index | SortedIndex:
    return SortedIndex(of) if isinstance(of, Order) else Index(of)


class Table:
    """A table with `indexes`."""

    __slots__ = ("_next", "indexes", "rows")

    def __init__(self, indexes: Iterable[Indexed] = ()) -> None:
        self.rows: dict[int, Row] = {}
        self.indexes: list[Any] = [new_index(of) for of in indexes]
        self._next = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows.values())

    def insert(self, row: Row) -> None:
        number = self._next
        self._next = number + 1
        self.rows[number] = row
        for index in self.indexes:
            index.add(number, row)

    def replace(self, number: int, row: Row) -> None:
        if self.indexes:
            old = self.rows[number]
            for index in self.indexes:
                index.replace(number, old, row)
        self.rows[number] = row

    def change(self, rows: Iterable[tuple[int, Row]]) -> None:
        """Replace rows by others with the same values in the columns of all indexes."""
        self.rows.update(rows)

    def remove(self, number: int) -> None:
        row = self.rows.pop(number)
        for index in self.indexes:
            index.remove(number, row)

    def numbers(self, index: int, key: Any) -> list[int]:
        """The numbers of the rows with this key, in the order of the table."""
        bucket = self.indexes[index].buckets.get(key)
        return [] if bucket is None else [*bucket] if len(bucket) == 1 else sorted(bucket)

    def matching(self, index: int, key: Any) -> list[Row]:
        """The rows with this key, in the order of the table."""
        bucket = self.indexes[index].buckets.get(key)
        if bucket is None:
            return []
        rows = self.rows
        return [rows[number] for number in sorted(bucket)]

    def numbers_among(self, index: int, keys: Iterable[Row], column: int) -> list[int]:
        """The numbers of the rows whose keys are in a column of these ones, in the order of the table."""
        return sorted(self.any_among(index, keys, column))

    def any_among(self, index: int, keys: Iterable[Row], column: int) -> Bucket:
        """The numbers of the rows whose keys are in a column of these ones, in any order."""
        found: Bucket = {}
        buckets = self.indexes[index].buckets
        for row in keys:
            if (bucket := buckets.get(row[column])) is not None:
                found |= bucket
        return found

    def matching_among(self, index: int, keys: Iterable[Row], column: int) -> list[Row]:
        """The rows whose keys are in a column of these ones, in the order of the table."""
        rows = self.rows
        return [rows[number] for number in self.numbers_among(index, keys, column)]

    def has(self, index: int, key: Any) -> bool:
        return key in self.indexes[index].buckets

    def first_rows(self, index: int, limit: int | None, offset: int | None) -> list[Row]:
        """The first rows in the order of a sorted index, without those before an offset."""
        found: list[Row] = self.indexes[index].first(self.rows, limit, offset)
        return found

    def clear(self) -> None:
        self.rows.clear()
        for index in self.indexes:
            index.clear()

    def delete(self, condition: Callable[[Row], bool]) -> int:
        """Delete the rows for which the condition holds; return their number."""
        found = [number for number, row in self.rows.items() if condition(row)]
        for number in found:
            self.remove(number)
        return len(found)


class Inwindow(Table):
    """The tuples of a partition in the window of one aggregate: rows of arguments, by arrival number.

    The host calls `enter` and `leave`; an aggregate may delete rows, which then never expire.
    """

    __slots__ = ("_arrivals", "_stored", "gone")

    def __init__(self, indexes: Iterable[Indexed] = ()) -> None:
        super().__init__(indexes)
        self._arrivals: deque[tuple[int, int]] = deque()
        """Number and place of each tuple in the window, and of deleted ones that have not been dropped yet."""
        self._stored = -1
        """The highest number that a store has."""
        self.gone: list[int] = []
        """The numbers that a store has and the window no longer."""

    def enter(self, number: int, place: int, row: Row) -> None:
        """Add a tuple; its place in the frame is its time, or its arrival number in the partition."""
        arrivals = self._arrivals
        self.rows[number] = row
        arrivals.append((number, place))
        for index in self.indexes:
            index.add(number, row)
        if len(arrivals) > 2 * len(self.rows) + 16:
            held = [pair for pair in arrivals if pair[0] in self.rows]
            arrivals.clear()
            arrivals.extend(held)

    def first(self) -> tuple[int, int] | None:
        """The number and the place of the oldest tuple; None if the window is empty."""
        arrivals, rows = self._arrivals, self.rows
        while arrivals:
            if arrivals[0][0] in rows:
                return arrivals[0]
            arrivals.popleft()
        return None

    def drain(self, bound: int, expire: Callable[..., Any] | None) -> None:
        """Remove the tuples whose places are below the bound, the oldest first; call `expire` with each before."""
        arrivals, rows, indexes = self._arrivals, self.rows, self.indexes
        while arrivals and arrivals[0][1] < bound:
            number = arrivals[0][0]
            row = rows.get(number)
            if row is None:  # the aggregate has deleted it
                arrivals.popleft()
                continue
            if expire is not None:
                expire(*row)
                if number not in rows:
                    continue
            arrivals.popleft()
            del rows[number]
            for index in indexes:
                index.remove(number, row)
            if number <= self._stored:
                self.gone.append(number)

    def slide(self, bound: int, expire: Callable[..., Any] | None, number: int, place: int, row: Row) -> None:
        """Drain the window up to the bound, then add a tuple."""
        arrivals = self._arrivals
        if arrivals and arrivals[0][1] < bound:
            self.drain(bound, expire)
        self.enter(number, place, row)

    def oldest(self) -> Row | None:
        """The oldest tuple; None if the window is empty."""
        first = self.first()
        return None if first is None else self.rows[first[0]]

    def arrivals(self) -> Iterator[tuple[int, int]]:
        """Number and place of each tuple in the window, the oldest first."""
        return (pair for pair in self._arrivals if pair[0] in self.rows)

    def shared(self, indexes: Iterable[Indexed]) -> Inwindow:
        """The same tuples, with indexes of its own, for an aggregate that only reads them."""
        view = Inwindow(indexes)
        self.indexes += view.indexes
        view.rows, view._arrivals = self.rows, self._arrivals
        return view

    def leave(self, number: int) -> None:
        """Remove an expired tuple, unless the aggregate has deleted it."""
        if number in self.rows:
            self.remove(number)

    def remove(self, number: int) -> None:
        super().remove(number)
        if number <= self._stored:
            self.gone.append(number)

    def clear(self) -> None:
        self.gone += [number for number in self.rows if number <= self._stored]
        super().clear()
        self._arrivals.clear()

    # --- a store --------------------------------------------------------------------------------------------------

    def unstored(self) -> list[tuple[int, int, Row]]:
        """Number, place and values of the tuples that a store does not have yet; they count as stored from now on."""
        found = []
        for number, place in reversed(self._arrivals):
            if number <= self._stored:
                break
            if number in self.rows:
                found.append((number, place, self.rows[number]))
        self._stored = max(self._stored, next(reversed(self.rows), -1))
        return found[::-1]

    def restore(self, number: int, place: int, row: Row) -> None:
        """Add a tuple that a store has."""
        self.enter(number, place, row)
        self._stored = number
