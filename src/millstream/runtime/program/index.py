"""Indexes of local tables and windows: rows by the values of columns.

An index has the rows themselves, by their numbers: a lookup reads nothing else. A row that is changed in place keeps
the values of the columns that indexes have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
