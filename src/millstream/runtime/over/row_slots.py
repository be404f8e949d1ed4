"""Slots of time, for aggregates that take one tuple at a time: the rows of the last tuple of each slot and partition,
once time has reached the end of the slot.

Slots are aligned at the epoch: `[n * length, (n + 1) * length)`. A row keeps the timestamp of its tuple. If the last
tuple of a slot has no row, the slot has none. Results are asked for when a slot ends, not for each tuple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.over.framed import combined
from millstream.runtime.over.row_aggregate import Row
from millstream.runtime.over.row_frames import HoldingFrames
from millstream.runtime.over.row_state import NUMBER, PARTITION, Partition
from millstream.runtime.state.table import StateTable


class Held(NamedTuple):
    """The last tuple of a partition; `row` has its columns, or else it is at `place` of the page at hand."""

    number: int
    time: int
    partition: Partition
    place: int
    row: Row | None


class RowSlots(HoldingFrames):
    """`_held` has the last tuple of each partition until its slot has ended, by the identity of the partition."""

    def __init__(
        self, schema: Schema, output: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[RowCall]
    ) -> None:
        super().__init__(schema, output, partition, frame, calls)
        assert frame.slots is not None
        self._length = frame.slots
        self.table = StateTable({**schema.polars, NUMBER: pl.Int64(), PARTITION: pl.Int64()})
        self._held: dict[int, Held] = {}
        self._ended: list[pl.DataFrame] = []
        """The rows of slots that tuples have ended, with the numbers of their tuples."""
        self._taken = False
        """True once the tuples of the table have been taken."""

    def _restore(self) -> None:
        if self._taken:
            return
        self._taken = True
        self.store.restore()
        partitions = {partition.identity: partition for partition in self.store.held}
        at = list(self._schema.polars).index(TS)
        for *row, number, identity in self.table.frame().rows():
            self._held[identity] = Held(number, row[at], partitions[identity], -1, tuple(row))

    def made(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Take tuples in order; the rows that they emit wait for `release`, which puts all in order."""
        self._restore()
        ended: list[tuple[Held, Sequence[Row]]] = []
        held, length = self._held, self._length
        for place, (partition, time, arguments) in enumerate(self._tuples(rows)):
            before = held.get(partition.identity)
            if before is not None and before.time // length < time // length:
                ended.append((before, self._results(partition)))
            number, arrival = self._arrived(partition, time)
            for each, given in zip(partition.evaluations, arguments, strict=True):
                each.enter(number, arrival, time, given)
            held[partition.identity] = Held(number, time, partition, place, None)
        self._emit(ended, rows)
        fresh = [last for last in held.values() if last.row is None]
        for last, row in zip(fresh, rows[[last.place for last in fresh]].rows(), strict=True):
            held[last.partition.identity] = last._replace(row=row, place=-1)
        return None

    @staticmethod
    def _results(partition: Partition) -> Sequence[Row]:
        return combined([each.results() for each in partition.evaluations])

    def _emit(self, ended: list[tuple[Held, Sequence[Row]]], rows: pl.DataFrame | None = None) -> None:
        """Keep the rows of ended slots, whose tuples are in the page `rows` or known."""
        for known in (True, False):
            of = [(each, row) for each, found in ended if (each.row is not None) == known for row in found]
            if not of:
                continue
            if known:
                tuples = pl.DataFrame([each.row for each, _ in of], self._schema.polars, orient="row")
            else:
                assert rows is not None
                tuples = rows[[each.place for each, _ in of]]
            made = self.joined(tuples, np.arange(len(of)), [row for _, row in of])
            assert made is not None
            self._ended.append(made.with_columns(pl.Series(NUMBER, [each.number for each, _ in of], pl.Int64())))

    def release(self, now: int) -> pl.DataFrame | None:
        """The rows of slots that have ended by now, in the order of time and arrival."""
        self._restore()
        if now >= self.needs:
            over = [each for each in self._held.values() if self._end_of(each.time) <= now]
            self._emit([(each, self._results(each.partition)) for each in over])
            for each in over:
                del self._held[each.partition.identity]
                self._emptied += not each.partition.held()
            self._drop_closed()
        if not self._ended:
            return None
        made = pl.concat(self._ended).sort(TS, NUMBER, maintain_order=True).drop(NUMBER)
        self._ended = []
        return made

    def _end_of(self, time: int) -> int:
        return (time // self._length + 1) * self._length

    # --- what is held back ------------------------------------------------------------------------------------------

    def _owing(self) -> set[int]:
        return {*self._held}

    def __len__(self) -> int:
        self._restore()
        return len(self._held)

    @property
    def oldest(self) -> int:
        """The lowest timestamp of the tuples held back."""
        self._restore()
        return min((each.time for each in self._held.values()), default=FOREVER)

    @property
    def needs(self) -> int:
        """The first time at which a tuple held back is emitted."""
        return FOREVER if self.oldest == FOREVER else self._end_of(self.oldest)

    def withheld(self) -> pl.DataFrame:
        """The tuples that are held back, without results."""
        self._restore()
        return pl.DataFrame([each.row for each in self._held.values()], self._schema.polars, orient="row")

    def tables(self) -> Mapping[str, StateTable]:
        if self._taken:
            rows = [(*(each.row or ()), each.number, identity) for identity, each in self._held.items()]
            self.table.replace(pl.DataFrame(rows, self.table.schema, orient="row"))
        return {**super().tables(), "results": self.table}

    def count(self) -> int:
        return super().count() + len(self)
