"""A local table that is its own index: rows by key, where a program finds them in no other way.

Compiled code reads `rows` and `several` itself. The key of a row is never NULL and does not change. Rows of one key are
in the order in which they came; nothing depends on the order of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

from millstream.runtime.program.index import Row


class KeyedTable:
    """Most keys have one row: `rows` has it. `several` has the rows of other keys."""

    __slots__ = ("_key", "rows", "several")

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._key: Callable[[Row], Any] = itemgetter(*columns)
        self.rows: dict[Any, Row] = {}
        self.several: dict[Any, list[Row]] = {}

    def __len__(self) -> int:
        return len(self.rows) + sum(map(len, self.several.values()))

    def __iter__(self) -> Iterator[Row]:
        yield from self.rows.values()
        for rows in self.several.values():
            yield from rows

    def all(self, key: Any) -> Iterable[Row]:
        """The rows of a key, in the order in which they came."""
        row = self.rows.get(key)
        return self.several.get(key, ()) if row is None else (row,)

    def insert(self, row: Row) -> None:
        key = self._key(row)
        if key in self.several:
            self.several[key].append(row)
        elif key in self.rows:
            self.several[key] = [self.rows.pop(key), row]
        else:
            self.rows[key] = row

    def remove(self, row: Row) -> None:
        """Remove this very row; others may be equal to it."""
        key = self._key(row)
        bucket = self.several.get(key)
        if bucket is None:
            del self.rows[key]
            return
        del bucket[next(at for at, other in enumerate(bucket) if other is row)]
        if len(bucket) == 1:
            (self.rows[key],) = self.several.pop(key)

    def clear(self) -> None:
        self.rows.clear()
        self.several.clear()
