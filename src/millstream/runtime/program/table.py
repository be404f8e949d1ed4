"""Local tables of an aggregate: rows by number, in order of arrival, with indexes.

Numbers only grow, so the order of a table is the order in which its rows came, also after an update. The rows of tables
that a program alone fills are lists, which an UPDATE changes in place unless it changes an index; others are tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from millstream.runtime.program.index import Bucket, Row
from millstream.runtime.program.ordered import Indexed, new_index


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
        for number, row in rows:
            self.replace(number, row)

    def remove(self, number: int) -> None:
        row = self.rows.pop(number)
        for index in self.indexes:
            index.remove(number, row)

    def matching_among(self, index: int, keys: Iterable[Row], column: int) -> list[Row]:
        """The rows whose keys are in a column of these ones, in the order of the table."""
        found: Bucket = {}
        rows_of = self.indexes[index].numbered
        for row in keys:
            found.update(rows_of(row[column]))
        return [row for _, row in sorted(found.items())]

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
