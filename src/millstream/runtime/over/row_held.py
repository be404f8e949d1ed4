"""Aggregates that take one tuple at a time, where rows wait for time to release them (`frames.py`).

With `SLIDE` of time the last tuple of each partition is held. Its results are asked for when the slot ends, not for
each tuple. If it has none, the slot has none.

With `ACTIVE EXPIRATION` EXPIRE runs with the arguments of a tuple that leaves, and what it returns is emitted. A tuple
that an aggregate has deleted does not expire.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import polars as pl

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.operator.frames import pick
from millstream.runtime.over.framed import combined
from millstream.runtime.over.frames import Leaving, Slots, Taken, merged_by_time
from millstream.runtime.over.row_aggregate import Rows
from millstream.runtime.over.row_frames import RowFrames
from millstream.runtime.over.row_state import NUMBER, PARTITION, Partition
from millstream.runtime.python.paged import PagedFrames, is_paged
from millstream.runtime.state.table import StateTable

NOTHING: Taken = [], np.zeros(0, dtype=np.int64)


def row_frames(
    schema: Schema, output: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[RowCall]
) -> RowFrames:
    """The frames of aggregates that take one tuple at a time."""
    kind: type[RowFrames] = RowActive if frame.active else RowFrames if frame.slots is None else RowSlots
    if kind is RowFrames and frame.size is None and frame.slide is None and all(map(is_paged, calls)):
        kind = PagedFrames
    return kind(schema, output, partition, frame, calls)


class RowSlots(RowFrames):
    """`_last` has the last tuple of each partition until its slot has ended: number, end of the slot and partition, by
    the identity of the partition."""

    def __init__(
        self, schema: Schema, output: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[RowCall]
    ) -> None:
        super().__init__(schema, output, partition, frame, calls)
        slots = frame.slots
        assert slots is not None
        self.held: Slots = Slots(schema.polars | {NUMBER: pl.Int64(), PARTITION: pl.Int64()}, [PARTITION], slots)
        self._last: dict[int, tuple[int, int, Partition]] | None = None
        """None: not yet taken from the table."""
        self._found: dict[int, Rows] = {}
        """The results of tuples that others follow, by number."""
        self._came: pl.DataFrame | None = None

    def _last_tuples(self) -> dict[int, tuple[int, int, Partition]]:
        if self._last is None:
            self.store.restore()
            partitions = {partition.identity: partition for partition in self.store.held}
            tuples = self.held.table.frame().select(PARTITION, NUMBER, TS).rows()
            following = self.held.slots.following
            self._last = {own: (number, following(time), partitions[own]) for own, number, time in tuples}
        return self._last

    def take(self, rows: pl.DataFrame) -> Taken:
        """Take tuples in order; the rows that they emit wait for `release`."""
        last, first, owners = self._last_tuples(), self.number, []
        ends = self.held.slots.following(rows.get_column(TS).to_numpy()).tolist()
        for end, (partition, time, arguments) in zip(ends, self._tuples(rows), strict=True):
            own = partition.identity
            if (before := last.get(own)) is not None and before[1] < end:
                self._found[before[0]] = _results_of(partition)
            number, arrival = self._arrived(partition, time)
            for each, given in zip(partition.evaluations, arguments, strict=True):
                each.enter(number, arrival, time, given)
            last[own] = number, end, partition
            owners.append(own)
        numbers = pl.Series(NUMBER, np.arange(first, self.number))
        came = rows.with_columns(numbers, pl.Series(PARTITION, owners, pl.Int64()))
        self._came = pick(came, self.held.table.schema)
        return NOTHING

    def release(self, made: pl.DataFrame | None, now: int) -> pl.DataFrame | None:  # noqa: ARG002
        last, came = self._last_tuples(), self._came
        self._came = None
        ended = self.held.take(came, now)
        if ended is None:
            return None
        ended = ended.sort(NUMBER)
        found: list[Rows] = []
        for number, own in ended.select(NUMBER, PARTITION).rows():
            if number in self._found:
                found.append(self._found.pop(number))
                continue
            partition = last.pop(own)[2]
            found.append(_results_of(partition))
            self._emptied += not partition.held()
        self._drop_closed()
        return self._with_results(ended, found)

    def _owing(self) -> set[int]:
        return {*self._last_tuples()}


def _results_of(partition: Partition) -> Rows:
    return combined([each.results() for each in partition.evaluations])


class RowActive(RowFrames):
    """The table has the tuples that have not left, in the order of their numbers, without gaps. They leave in this
    order, whatever their partitions."""

    def __init__(
        self, schema: Schema, output: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[RowCall]
    ) -> None:
        super().__init__(schema, output, partition, frame, calls)
        assert frame.size is not None
        self.table = StateTable({**schema.polars, NUMBER: pl.Int64()})
        self._length = frame.size
        self.held: Leaving = Leaving(self.table, schema.times, frame.size)
        self._due: deque[tuple[int, int, Partition]] | None = None
        """Number, time and partition of each tuple that has not left; None: not yet taken from the table."""
        self._gone: list[Rows] = []
        """The results of the first tuples of the table, which have left."""

    def _queue_of_tuples(self) -> deque[tuple[int, int, Partition]]:
        if self._due is None:
            tuples = self.table.frame()
            times, numbers = tuples.get_column(TS).to_list(), tuples.get_column(NUMBER).to_list()
            self._due = deque(zip(numbers, times, self.store.of(tuples), strict=True))
        return self._due

    def take(self, rows: pl.DataFrame) -> Taken:
        due, found = self._queue_of_tuples(), []
        self.table.append(rows.with_columns(pl.Series(NUMBER, np.arange(self.number, self.number + rows.height))))
        for partition, time, arguments in self._tuples(rows):
            self._leave(time)
            due.append((self.number, time, partition))
            found.append(self._results(partition, time, arguments))
        return self._taken(np.arange(rows.height), found)

    def release(self, made: pl.DataFrame | None, now: int) -> pl.DataFrame | None:
        """Let the tuples leave whose expiry is before `now`; return their rows too."""
        self._leave(now)
        gone, due = None, self._queue_of_tuples()
        if self._gone:
            gone = self._with_results(self.held.moved(self.table.frame().head(len(self._gone))), self._gone)
            self._gone = []
            self.table.purge_below(NUMBER, due[0][0] if due else self.number)
        self._drop_closed()
        self._forget()
        return merged_by_time(made, gone)

    def _leave(self, now: int) -> None:
        due = self._queue_of_tuples()
        while due and (due[0][1] + self._length < now or now == FOREVER):
            number, _, partition = due.popleft()
            partition.changed = True
            self._gone.append(combined([each.expire(number) or () for each in partition.evaluations]))
            self._emptied += not partition.held()

    def _owing(self) -> set[int]:
        return {partition.identity for _, _, partition in self._queue_of_tuples()}

    def tables(self) -> dict[str, StateTable]:
        return {**super().tables(), "tuples": self.table}
