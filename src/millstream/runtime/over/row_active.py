"""Active expiration of aggregates that take one tuple at a time.

A tuple with timestamp t leaves a frame of d at t + d, after the tuples of that time: EXPIRE runs with its arguments,
and what it returns is emitted with the columns of the tuple and the time t + d. A tuple that an aggregate has deleted
does not expire. Tuples leave in the order in which they came, whatever their partitions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.over.framed import combined
from millstream.runtime.over.row_aggregate import Row, Rows
from millstream.runtime.over.row_frames import HoldingFrames
from millstream.runtime.over.row_state import NUMBER, Partition
from millstream.runtime.state.table import StateTable


class RowActive(HoldingFrames):
    """`table` has the tuples that have not left, in order of their numbers, without gaps."""

    def __init__(
        self, schema: Schema, output: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[RowCall]
    ) -> None:
        super().__init__(schema, output, partition, frame, calls)
        assert frame.size is not None
        self._length = frame.size
        self._times = list(schema.times)
        self.table = StateTable({**schema.polars, NUMBER: pl.Int64()})
        self._due: deque[tuple[int, int, Partition]] | None = None
        """Number, time and partition of each tuple that has not left; None: not yet taken from the table."""

    def _queue_of_tuples(self) -> deque[tuple[int, int, Partition]]:
        if self._due is None:
            tuples = self.table.frame()
            times, numbers = tuples.get_column(TS).to_list(), tuples.get_column(NUMBER).to_list()
            self._due = deque(zip(numbers, times, self.store.of(tuples), strict=True))
        return self._due

    # --- tuples and expiries ----------------------------------------------------------------------------------------

    def made(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        due = self._queue_of_tuples()
        numbers = pl.Series(NUMBER, np.arange(self.number, self.number + rows.height))
        self.table.append(rows.with_columns(numbers))
        numbered: list[int] = []
        results: list[Row] = []
        leaving: list[bool] = []
        for partition, time, arguments in self._tuples(rows):
            self._leave(time, numbered, results, leaving)
            due.append((self.number, time, partition))
            found = self.take(partition, time, arguments)
            numbered += [due[-1][0]] * len(found)
            leaving += [False] * len(found)
            results += found
        return self._emitted(numbered, results, leaving)

    def release(self, now: int) -> pl.DataFrame | None:
        """Let the tuples leave whose expiry is before `now`; return their rows."""
        numbered: list[int] = []
        results: list[Row] = []
        leaving: list[bool] = []
        self._leave(now, numbered, results, leaving)
        made = self._emitted(numbered, results, leaving)
        due = self._queue_of_tuples()
        self.table.purge_below(NUMBER, due[0][0] if due else self.number)
        self._drop_closed()
        self._forget()
        return made

    def _leave(self, now: int, numbered: list[int], results: list[Row], leaving: list[bool]) -> None:
        due = self._queue_of_tuples()
        while due and (due[0][1] + self._length < now or now == FOREVER):
            number, _, partition = due.popleft()
            found = self._expired(partition, number)
            results += found
            numbered += [number] * len(found)
            leaving += [True] * len(found)

    def _expired(self, partition: Partition, number: int) -> Rows:
        partition.changed = True
        found = combined([each.expire(number) or () for each in partition.evaluations])
        self._emptied += not partition.held()
        return found

    def _emitted(self, numbered: list[int], results: list[Row], leaving: list[bool]) -> pl.DataFrame | None:
        if not numbered:
            return None
        tuples = self.table.frame()
        first = int(tuples.item(0, NUMBER))
        made = self.joined(tuples, np.array(numbered) - first, results)
        assert made is not None
        if not any(leaving):
            return made
        moved = self._moved(made)
        late = pl.Series(leaving)
        return made.with_columns(
            pl.when(late).then(moved[name]).otherwise(made[name]).alias(name) for name in made.columns
        )

    def _moved(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with the time at which their tuples leave."""
        later = [(pl.col(name).to_physical() + self._length).cast(rows.schema[name]) for name in self._times]
        return rows.with_columns(*later, pl.col(TS) + self._length)

    # --- what is held back ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.table)

    @property
    def oldest(self) -> int:
        """The first time at which a tuple leaves."""
        return int(self.table.frame().item(0, TS)) + self._length if len(self.table) else FOREVER

    @property
    def needs(self) -> int:
        """The time at which it is known that no other tuple precedes the first expiry."""
        return self.oldest + 1 if len(self.table) else FOREVER

    def withheld(self) -> pl.DataFrame:
        """The rows of tuples that have not left, without results."""
        return self._moved(self.table.frame())

    def _owing(self) -> set[int]:
        return {partition.identity for _, _, partition in self._queue_of_tuples()}

    def tables(self) -> Mapping[str, StateTable]:
        return {**super().tables(), "tuples": self.table}
