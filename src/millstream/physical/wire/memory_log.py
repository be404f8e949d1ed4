"""A control log in memory, for jobs without a checkpoint: it holds the records themselves and ends with its process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter

from millstream.physical.wire.records import Record

GROWTH = 32
"""Records by which a log may grow before it is compacted; one may hold the rows of an insert."""


class MemoryLog:
    """The interface of `ControlLog`; a position is the number of records written so far."""

    def __init__(self) -> None:
        self._records: list[tuple[int, Record]] = []
        self._end = self._compacted = 0

    def append(self, record: Record) -> int:
        self._end += 1
        self._records.append((self._end, record))
        return self._end

    def end(self) -> int:
        return self._end

    def read(self, start: int, end: int) -> Iterator[Record]:
        first, last = (bisect_right(self._records, at, key=itemgetter(0)) for at in (start, end))
        return (record for _, record in self._records[first:last])

    def numbered(self) -> Iterator[tuple[int, Record]]:
        return iter(list(self._records))

    @property
    def grown(self) -> bool:
        return len(self._records) > self._compacted + GROWTH

    def compact(self, needed: Callable[[int, Record], bool]) -> None:
        self._records = [held for held in self._records if needed(*held)]
        self._compacted = len(self._records)

    def close(self) -> None:
        pass
