"""Frames of aggregates that take one tuple at a time.

Tuples are taken in order, those of a large page one partition after the other. A tuple has the rows that its aggregates
return, combined: the cross product of the results of the calls, none if one of them returns none. Tuples leave a frame
of time also in partitions that get no tuples any more, when `purge` reports the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.arrays import Places
from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.over.framed import combined
from millstream.runtime.over.frames import Frames, Taken, with_results
from millstream.runtime.over.partitions import Arranged
from millstream.runtime.over.row_aggregate import Row, Rows
from millstream.runtime.over.row_state import Partition, PartitionStore
from millstream.runtime.state.table import StateTable

FEW = 64
"""Number of empty partitions that are always tolerated."""
MANY = 1024
"""Number of tuples from which on they are taken by partition."""


class RowFrames(Frames):
    """The frames of all calls."""

    def __init__(
        self, schema: Schema, output: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[RowCall]
    ) -> None:
        self._size, self._names = frame.size, list(output.polars)
        self.store = PartitionStore(schema, partition, frame, calls)
        self._arguments = [group.columns for group in self.store.groups]
        self._columns = [column for group in self.store.groups for call in group.calls for column in call.outputs]
        self.number = 0
        """The number of the next tuple."""
        self._leaving: list[tuple[int, int, Partition]] = []
        """Partitions by the first place from which a tuple leaves, for frames of time."""
        self._queued = False
        """True once the partitions of a restored store are queued."""
        self._divided, self._emptied = bool(partition), 0
        """How often a window has become empty since partitions have been forgotten."""
        self._timely = frame.size is not None and not frame.rows and not frame.active
        self._checked = False
        """True once the state of a partition was found to be one that a checkpoint can hold."""

    # --- tuples -----------------------------------------------------------------------------------------------------

    def take(self, rows: pl.DataFrame) -> Taken:
        self._ensure_queued()
        if len(self._arguments) == 1 and rows.height >= MANY:
            codes = self.store.codes(rows)
            arranged = Arranged.by(codes)
            if 2 * len(arranged.starts) <= rows.height:
                return self._taken(arranged.order, self._by_partition(rows, codes, arranged))
        found = [self._results(partition, time, arguments) for partition, time, arguments in self._tuples(rows)]
        return self._taken(np.arange(rows.height), found)

    def _by_partition(self, rows: pl.DataFrame, codes: Places, arranged: Arranged) -> list[Rows]:
        """Take tuples, one partition after the other; return their results in this order. What a partition holds is
        then read once, not for each tuple again."""
        order, first = arranged.order, self.number
        numbers, taken = (order + first).tolist(), rows.select({TS, *self._arguments[0]})[order]
        times = taken.get_column(TS).to_list()
        arguments = [*zip(*(taken.get_column(name).to_list() for name in self._arguments[0]), strict=True)]
        found: list[Rows] = []
        for start, last in zip(arranged.starts.tolist(), arranged.last.tolist(), strict=True):
            partition, end = self.store.held[codes[order[start]]], last + 1
            _, arrival = self._arrived(partition, times[start])
            partition.arrivals = arrival + end - start
            (each,) = partition.evaluations
            found += each.take_all(numbers[start:end], arrival, times[start:end], arguments[start:end])
        self.number = first + rows.height
        return found

    def _tuples(self, rows: pl.DataFrame) -> Iterator[tuple[Partition, int, list[Row]]]:
        """The partition, the time and the arguments of all groups of calls of each tuple."""
        partitions = self.store.of(rows)
        times = rows.get_column(TS).to_list()
        arguments = [
            list(zip(*(rows.get_column(name).to_list() for name in names), strict=True)) for names in self._arguments
        ]
        return zip(partitions, times, map(list, zip(*arguments, strict=True)), strict=True)

    def _arrived(self, partition: Partition, time: int) -> tuple[int, int]:
        """The number of the next tuple, and that in its partition."""
        number, arrival = self.number, partition.arrivals
        self.number, partition.arrivals, partition.changed = number + 1, arrival + 1, True
        if self._timely and not partition.due:
            self._queue(partition, time)
        return number, arrival

    def _results(self, partition: Partition, time: int, arguments: list[Row]) -> Rows:
        """Take the next tuple of a partition; return the rows of its results."""
        number, arrival = self._arrived(partition, time)
        if len(arguments) == 1:
            return partition.evaluations[0].take(number, arrival, time, arguments[0])
        taken = zip(partition.evaluations, arguments, strict=True)
        return combined([each.take(number, arrival, time, given) for each, given in taken])

    def _taken(self, places: Places, found: Sequence[Rows]) -> Taken:
        """The results of the tuples at these places, in the order of the page."""
        counts = np.fromiter(map(len, found), np.int64, len(found))
        rows = [*chain.from_iterable(found)]
        made = [
            pl.Series(each.name, [row[at] for row in rows], each.type.polars) for at, each in enumerate(self._columns)
        ]
        ordered = bool((places[1:] > places[:-1]).all())
        if ordered and (counts == 1).all():
            return made, None
        places = np.repeat(places, counts)
        if ordered:
            return made, places
        order = np.argsort(places, kind="stable")
        return [series.gather(order) for series in made], places[order]

    def _with_results(self, tuples: pl.DataFrame, found: Sequence[Rows]) -> pl.DataFrame | None:
        """The tuples, once for each row of their results, with these."""
        results, places = self._taken(np.arange(tuples.height), found)
        return with_results(tuples, results, places, self._names)

    # --- time -------------------------------------------------------------------------------------------------------

    def _queue(self, partition: Partition, place: int) -> None:
        partition.due = True
        heappush(self._leaving, (place, partition.identity, partition))

    def purge(self, now: int) -> None:
        """Let tuples leave the frames of tuples at `now`, in all partitions."""
        if not self._checked and self.store.held:
            self._checked = True
            self.store.check()
        if not self._timely or self._size is None or now == FOREVER:
            return
        self._ensure_queued()
        queue = self._leaving
        while queue and queue[0][0] < now - self._size:
            partition = heappop(queue)[2]
            partition.due = False
            for each in partition.evaluations:
                each.advance(now)
            partition.changed = True
            if (first := partition.first_place()) is not None:
                self._queue(partition, first)
            else:
                self._emptied += 1
        self._forget()

    def _forget(self) -> None:
        """Drop the partitions that hold nothing, once they may be many."""
        held = self.store.held
        if self._divided and self._emptied > max(FEW, len(held) // 2):
            self._emptied, owing = 0, self._owing()
            kept = [not each.forgettable or each.identity in owing for each in held]
            self.store.keep(np.array(kept, dtype=np.bool_))

    def _owing(self) -> set[int]:
        """The identities of the partitions for which rows are held back."""
        return set()

    def _ensure_queued(self) -> None:
        """Queue the partitions of a restored store, before any other tuple comes."""
        if self._timely and not self._queued:
            self._queued = True
            self.store.restore()
            for partition in self.store.held:
                if (first := partition.first_place()) is not None:
                    self._queue(partition, first)

    def close(self, closed: Punctuations) -> None:
        """Drop the partitions that match, once they owe no rows."""
        self.store.restore()
        if len(closed) and self.store.held:
            for code in np.flatnonzero(closed.match(self.store.keys.keys).to_numpy()).tolist():
                partition = self.store.held[code]
                partition.closing = partition.changed = True
            self._drop_closed()

    def _drop_closed(self) -> None:
        held = self.store.held
        if any(partition.closing for partition in held):
            owing = self._owing()
            self.store.keep(np.array([not each.closing or each.identity in owing for each in held]))

    # --- state ------------------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, StateTable]:
        self.store.flush()
        return self.store.tables()

    def scalars(self) -> dict[str, Any]:
        return {"number": self.number}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self.number = values["number"]

    def count(self) -> int:
        return self.store.count()
