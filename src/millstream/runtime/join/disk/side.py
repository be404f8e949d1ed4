"""The part of one side of a join that is not in memory, or is there for the sake of what is not.

| | |
|---|---|
| disk | tuples for which there was no room, by bucket of their key |
| buffer | the purge buffer: tuples that punctuation has closed, but that partners on disk have not met |
| arrived | when each tuple in memory came, as the number of the step |

A tuple on disk knows when it came and when it went there. Two tuples that were in memory together have met in the
memory join: the later one came before, or in the step in which, the first of them left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS
from millstream.runtime.join.disk.table import BUCKET, DiskTable, Tags
from millstream.runtime.join.index import Equality
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, restricted
from millstream.runtime.state.table import StateTable

ARRIVED, SPILLED = "__arrived", "__spilled"
_NUMBERS: dict[str, pl.DataType] = {ARRIVED: pl.Int64(), SPILLED: pl.Int64(), BUCKET: pl.UInt8()}


@dataclass(slots=True)
class Steps:
    """The number of the current step; steps are counted while something is on disk. `owing`: its tuples may have missed
    partners on disk."""

    now: int = 0
    active: bool = False
    owing: bool = True


class DiskPart:
    def __init__(self, side: int, memory: StateTable, equality: Equality, steps: Steps) -> None:
        schema: Mapping[str, pl.DataType] = memory.schema | _NUMBERS
        self.memory, self.disk, self.buffer = memory, DiskTable(schema), StateTable(schema)
        self.arrived = Tags()
        self._side, self._equality, self._steps = side, equality, steps
        self._closed = NO_PUNCTUATIONS
        self._earliest: int | None = None
        """No timestamp on disk is lower; None: nobody has looked."""
        self._other = self

    def face(self, other: DiskPart) -> None:
        """Make another part the one of the other side."""
        self._other, other._other = other, self

    @property
    def active(self) -> bool:
        return self._steps.active

    def buckets_of(self, rows: pl.DataFrame) -> npt.NDArray[np.uint8]:
        return self._equality.buckets(rows, self._side)

    # --- what becomes of tuples in memory ---------------------------------------------------------------------------

    def stored(self, count: int) -> None:
        """So many tuples of this step have been appended to memory."""
        if self._steps.active and count:
            self.arrived.append(count, self._steps.now)

    def owe_new(self, rows: pl.DataFrame) -> pl.DataFrame:
        """New tuples will not be stored. Those that may have missed partners go to the buffer; returns the others."""
        return self._owe(rows, np.full(rows.height, self._steps.now)) if self._steps.active else rows

    def owe_stored(self, rows: pl.DataFrame, kept: Mask) -> pl.DataFrame:
        """The same for tuples that leave memory, given which ones stay."""
        if not self._steps.active:
            return rows
        arrived = self.arrived.values[~kept]
        self.arrived.keep(kept)
        return self._owe(rows, arrived)

    def _owe(self, rows: pl.DataFrame, arrived: Integers) -> pl.DataFrame:
        if not self._steps.owing:
            return rows
        buckets = self.buckets_of(rows)
        owed = np.isin(buckets, list(self._other.disk.buckets))
        if not owed.any():
            return rows
        self.buffer.append(where(self._numbered(rows, arrived, self._steps.now, buckets), owed))
        return where(rows, ~owed)

    def spill(self, chosen: Collection[int]) -> None:
        """Move buckets from memory to disk."""
        rows = self.memory.frame()
        buckets = self.buckets_of(rows)
        going = np.isin(buckets, list(chosen))
        if going.any():
            numbered = self._numbered(rows, self.arrived.values, self._steps.now, buckets)
            for bucket in chosen:  # one at a time, for there is little room
                self.disk.append(where(numbered, buckets == bucket))
            self.memory.keep(pl.Series(~going))
            self.arrived.keep(~going)
            self._earliest = None

    def _numbered(
        self, rows: pl.DataFrame, arrived: Integers, spilled: int, buckets: npt.NDArray[np.uint8]
    ) -> pl.DataFrame:
        return rows.with_columns(
            pl.Series(ARRIVED, arrived), pl.lit(spilled, pl.Int64).alias(SPILLED), pl.Series(BUCKET, buckets)
        )

    # --- what is here -----------------------------------------------------------------------------------------------

    def in_memory(self) -> pl.DataFrame:
        """The stored tuples that are in memory."""
        rows = self.memory.frame()
        return self._numbered(rows, self.arrived.values, FOREVER, self.buckets_of(rows))

    def with_memory(self, columns: Collection[str]) -> pl.DataFrame:
        """Some columns of all tuples, those in memory too, and perhaps more columns."""
        names = [name for name in self.memory.schema if name in columns]
        disk, alive = self.disk.look(self.disk.buckets, {*names, BUCKET})
        parts = [disk if alive.all() else where(disk, alive)]
        parts += [self.buffer.frame().select(*names, BUCKET)]
        parts += [self.memory.frame().with_columns(pl.lit(0, pl.UInt8).alias(BUCKET)).select(*names, BUCKET)]
        return pl.concat(parts)

    # --- what may go ------------------------------------------------------------------------------------------------

    def close(self, translated: Punctuations) -> None:
        """Tuples that match are not needed any more, once they have met all partners."""
        if self._steps.active:
            self._closed = Punctuations.concat([self._closed, translated])

    @property
    def told(self) -> bool:
        """Whether something has been closed since tuples were last taken."""
        return len(self._closed) > 0

    @property
    def may_shrink(self) -> bool:
        """Whether tuples on disk or in the buffer may be closed."""
        return self.told or len(self.buffer) > 0

    def take_closed(self) -> pl.DataFrame:
        """Remove the closed tuples that are on disk or in the buffer, and return them."""
        taken = self.buffer.frame()
        if taken.height:
            self.buffer.replace(taken.clear())
        if len(self._closed) and len(self.disk):
            found = self.disk.take({*restricted(self._closed), BUCKET}, self._closed.match)
            taken = pl.concat([taken, found]) if found.height else taken
        self._closed = NO_PUNCTUATIONS
        return taken

    def take_expired(self, limit: int) -> pl.DataFrame | None:
        """Remove the tuples on disk that are older than the limit, and return them."""
        if not len(self.disk):
            return None
        if self._earliest is None:
            rows, alive = self.disk.look(self.disk.buckets, {TS})
            self._earliest = int(rows.get_column(TS).to_numpy()[alive].min())
        if limit <= self._earliest:
            return None
        self._earliest = None
        return self.disk.take({TS}, lambda rows: rows.get_column(TS) < limit)

    def forget(self) -> None:
        """Drop everything but what is in memory."""
        for table in (self.disk, self.buffer):
            if len(table):
                table.replace(table.frame().clear())
        self._closed = NO_PUNCTUATIONS

    def start(self) -> None:
        """Something goes to disk for the first time: all that is in memory has met."""
        self.arrived = Tags(np.zeros(len(self.memory), dtype=np.int64))

    def to_value(self) -> dict[str, object]:
        return {"arrived": self.arrived.to_value(), "closed": self._closed}

    def restore(self, value: Mapping[str, object]) -> None:
        self.arrived, self._earliest = Tags.from_value(value["arrived"]), None  # type: ignore[arg-type]
        self._closed = value["closed"]  # type: ignore[assignment]
