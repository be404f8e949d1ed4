"""The rows of a table that streams write, for statements that take one tuple at a time.

Statements are compiled to Python (`runtime.program`), each with the indexes that its conditions need. `Shared` holds
the rows and all indexes, and logs every change; each statement works on a `View` of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from millstream.algebra.program.program import Program
from millstream.runtime.program.compile import compiled
from millstream.runtime.program.index import Row
from millstream.runtime.program.ordered import AnyIndex, Indexed, new_index
from millstream.runtime.program.table import Table

Change = tuple[int, int, Row | None]
"""The time of a change, the number of the row, and its values; None if it is deleted."""


class Shared(Table):
    """`time` is that of the tuple whose changes are logged."""

    __slots__ = ("_indexed", "log", "time")

    def __init__(self, rows: Iterable[tuple[int, Row]], next_number: int) -> None:
        super().__init__()
        self.rows.update(rows)
        self._next = next_number
        self._indexed: dict[Indexed, AnyIndex] = {}
        self.log: list[Change] = []
        self.time = 0

    @property
    def next_number(self) -> int:
        return self._next

    def index(self, of: Indexed) -> AnyIndex:
        """The index on these columns, or in this order."""
        if of not in self._indexed:
            made = self._indexed[of] = new_index(of)
            for number, row in self.rows.items():
                made.add(number, row)
            self.indexes.append(made)
        return self._indexed[of]

    def insert(self, row: Row) -> None:
        self.log.append((self.time, self._next, row))
        super().insert(row)

    def replace(self, number: int, row: Row) -> None:
        if self.rows[number] != row:
            self.log.append((self.time, number, row))
            super().replace(number, row)

    def remove(self, number: int) -> None:
        self.log.append((self.time, number, None))
        super().remove(number)

    def clear(self) -> None:
        self.log += [(self.time, number, None) for number in self.rows]
        super().clear()


class View(Table):
    """The rows of a shared table, with the indexes of one statement in its own order."""

    __slots__ = ("_shared",)

    def __init__(self, shared: Shared, indexes: Iterable[Indexed]) -> None:
        self._shared, self.rows = shared, shared.rows
        self.indexes = [shared.index(of) for of in indexes]

    def insert(self, row: Row) -> None:
        self._shared.insert(row)

    def replace(self, number: int, row: Row) -> None:
        self._shared.replace(number, row)

    def change(self, rows: Iterable[tuple[int, Row]]) -> None:
        for number, row in rows:
            self._shared.replace(number, row)

    def remove(self, number: int) -> None:
        self._shared.remove(number)

    def clear(self) -> None:
        self._shared.clear()


def statement(program: Program, shared: Shared) -> Any:
    """A function that runs a program for one tuple; it returns the reasons for rows that are refused."""
    factory = compiled(program)
    made = factory()
    (attribute,) = factory.INDEXES
    setattr(made, attribute, View(shared, factory.INDEXES[attribute]))
    return made.iterate
