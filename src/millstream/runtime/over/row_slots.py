"""Slots of time, for aggregates that take one tuple at a time: the rows of the last tuple of each slot and partition,
once time has reached the end of the slot.

Slots are aligned at the epoch: `[n * length, (n + 1) * length)`. A row keeps the timestamp of its tuple. If the last
tuple of a slot has no row, the slot has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.over.evaluation import Rows
from millstream.runtime.over.row_aggregate import Row
from millstream.runtime.over.row_frames import RowFrames
from millstream.runtime.over.row_state import PARTITION, Partition
from millstream.runtime.state.table import StateTable


class RowSlots(RowFrames):
    """`_held` has the rows that are held back, complete, by partition, with the time of their tuple."""

    def __init__(
        self, schema: Schema, output: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[RowCall]
    ) -> None:
        super().__init__(schema, output, partition, frame, calls)
        assert frame.slots is not None
        self._length = frame.slots
        self._names = list(output.polars)
        self.table = StateTable({**output.polars, PARTITION: pl.Int64()})
        self._held: dict[int, tuple[int, list[Row]]] = {}
        self._taken = False
        """True once the rows of the table have been taken."""

    def _restore(self) -> None:
        if not self._taken:
            self._taken = True
            at = self._names.index(TS)
            for *row, partition in self.table.frame().rows():
                self._held.setdefault(partition, (row[at], []))[1].append(tuple(row))

    def made(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        self._restore()
        last: dict[int, tuple[int, int, Rows]] = {}
        ended: list[Row] = []
        places: list[int] = []
        results: list[Row] = []
        for place, (partition, time, arguments) in enumerate(self._tuples(rows)):
            found = self.take(partition, time, arguments)
            self._end(partition, time, last, ended, places, results)
            last[partition.identity] = place, time, found
        held = [(identity, place, found) for identity, (place, _, found) in last.items() if found]
        kept = self.joined(rows, [place for _, place, found in held for _ in found], [r for *_, f in held for r in f])
        if kept is not None:
            full = iter(kept.rows())
            for identity, _, found in held:
                self._held[identity] = last[identity][1], [next(full) for _ in found]
        parts = [self._frame_of(ended), self.joined(rows, places, results)]
        known = [part for part in parts if part is not None]
        return pl.concat(known).sort(TS, maintain_order=True) if known else None

    def _end(
        self,
        partition: Partition,
        time: int,
        last: dict[int, tuple[int, int, Rows]],
        ended: list[Row],
        places: list[int],
        results: list[Row],
    ) -> None:
        """Emit the rows of the partition's last tuple if that ended a slot before `time`; else they are replaced."""
        before = last.get(partition.identity)
        stored = self._held.pop(partition.identity, None)
        if before is not None and before[1] // self._length < time // self._length:
            places += [before[0]] * len(before[2])
            results += before[2]
        elif stored is not None and stored[0] // self._length < time // self._length:
            ended += stored[1]

    def release(self, now: int) -> pl.DataFrame | None:
        """The rows of slots that have ended by now."""
        self._restore()
        if now < self.needs:
            return None
        ended = [key for key, (time, _) in self._held.items() if self._end_of(time) <= now]
        rows = [row for key in ended for row in self._held.pop(key)[1]]
        made = self._frame_of(rows)
        return None if made is None else made.sort(TS, maintain_order=True)

    def _end_of(self, time: int) -> int:
        return (time // self._length + 1) * self._length

    def _frame_of(self, rows: list[Row]) -> pl.DataFrame | None:
        return pl.DataFrame(rows, self._output.polars, orient="row") if rows else None

    # --- what is held back ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        self._restore()
        return sum(len(rows) for _, rows in self._held.values())

    @property
    def oldest(self) -> int:
        """The lowest timestamp of the rows held back."""
        self._restore()
        return min((time for time, _ in self._held.values()), default=FOREVER)

    @property
    def needs(self) -> int:
        """The first time at which a row held back is emitted."""
        return FOREVER if self.oldest == FOREVER else self._end_of(self.oldest)

    def withheld(self) -> pl.DataFrame:
        rows = [row for _, rows in self._held.values() for row in rows]
        return pl.DataFrame(rows, self._output.polars, orient="row")

    def tables(self) -> Mapping[str, StateTable]:
        if self._taken:
            rows = [(*row, identity) for identity, (_, rows) in self._held.items() for row in rows]
            self.table.replace(pl.DataFrame(rows, self.table.schema, orient="row"))
        return {**super().tables(), "results": self.table}

    def count(self) -> int:
        return super().count() + len(self)
