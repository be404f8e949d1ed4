"""The state of one side of a join beyond its tuples in memory.

| | |
|---|---|
| disk | tuples for which there was no room in memory, by bucket of their key |
| buffer | the purge buffer: tuples that punctuation has closed, but that have not joined their partners on disk |
| arrived | the number of the step in which each tuple in memory arrived |

A tuple on disk carries the steps in which it arrived and in which it was spilled. Two tuples that were in memory
together have met in the memory join: the later one arrived before, or in the step in which, the first of them left.
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
    """`now`: the number of the current step; steps are counted while tuples are on disk (`active`). `owing`: tuples of
    the step may have missed partners on disk."""

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
        """Lowest timestamp on disk; None: not known."""
        self.other = self
        """The part of the other side."""

    @property
    def active(self) -> bool:
        return self._steps.active

    def buckets_of(self, rows: pl.DataFrame) -> npt.NDArray[np.uint8]:
        return self._equality.buckets(rows, self._side)

    # --- from memory to disk ----------------------------------------------------------------------------------------

    def stored(self, count: int) -> None:
        """Record that `count` tuples of this step have been appended to memory."""
        if self._steps.active and count:
            self.arrived.append(count, self._steps.now)

    def owe_new(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Move new tuples that will not be stored but may have missed partners to the buffer; returns the others."""
        return self._owe(rows, np.full(rows.height, self._steps.now)) if self._steps.active else rows

    def owe_stored(self, rows: pl.DataFrame, kept: Mask) -> pl.DataFrame:
        """Do the same for tuples that leave memory; `kept` masks those that stay."""
        if not self._steps.active:
            return rows
        arrived = self.arrived.values[~kept]
        self.arrived.keep(kept)
        return self._owe(rows, arrived)

    def _owe(self, rows: pl.DataFrame, arrived: Integers) -> pl.DataFrame:
        if not self._steps.owing:
            return rows
        buckets = self.buckets_of(rows)
        owed = np.isin(buckets, list(self.other.disk.buckets))
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
            for bucket in chosen:  # one at a time, because memory is short
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

    # --- stored tuples ----------------------------------------------------------------------------------------------

    def in_memory(self) -> pl.DataFrame:
        """Return the stored tuples in memory, numbered like those on disk."""
        rows = self.memory.frame()
        return self._numbered(rows, self.arrived.values, FOREVER, self.buckets_of(rows))

    def with_memory(self, columns: Collection[str]) -> pl.DataFrame:
        """Return these columns, and the bucket, of all tuples on disk, in the buffer and in memory."""
        names = [name for name in self.memory.schema if name in columns]
        disk, alive = self.disk.look(self.disk.buckets, {*names, BUCKET})
        parts = [disk if alive.all() else where(disk, alive)]
        parts += [self.buffer.frame().select(*names, BUCKET)]
        parts += [self.memory.frame().with_columns(pl.lit(0, pl.UInt8).alias(BUCKET)).select(*names, BUCKET)]
        return pl.concat(parts)

    # --- tuples that leave ------------------------------------------------------------------------------------------

    def close(self, translated: Punctuations) -> None:
        """Add punctuation: matching tuples may leave once they have met all their partners."""
        if self._steps.active:
            self._closed = Punctuations.concat([self._closed, translated])

    @property
    def closed(self) -> bool:
        """True if punctuation has been added since closed tuples were last taken."""
        return len(self._closed) > 0

    def take_closed(self) -> pl.DataFrame:
        """Remove and return the closed tuples on disk and in the buffer."""
        taken = self.buffer.frame()
        if taken.height:
            self.buffer.replace(taken.clear())
        if len(self._closed) and len(self.disk):
            found = self.disk.take({*restricted(self._closed), BUCKET}, self._closed.match)
            taken = pl.concat([taken, found]) if found.height else taken
        self._closed = NO_PUNCTUATIONS
        return taken

    def take_expired(self, limit: int) -> pl.DataFrame | None:
        """Remove and return the tuples on disk that are older than the limit."""
        if not len(self.disk):
            return None
        if self._earliest is None:
            rows, alive = self.disk.look(self.disk.buckets, {TS})
            self._earliest = int(rows.get_column(TS).to_numpy()[alive].min())
        if limit <= self._earliest:
            return None
        self._earliest = None
        return self.disk.take({TS}, lambda rows: rows.get_column(TS) < limit)

    def take_all(self) -> pl.DataFrame:
        """Remove and return all tuples on disk and in the buffer; memory is empty."""
        taken = pl.concat([self.disk.frame(), self.buffer.frame()])
        for table in (self.disk, self.buffer):
            table.replace(taken.clear())
        self._closed, self.arrived = NO_PUNCTUATIONS, Tags()
        return taken

    def to_value(self) -> dict[str, object]:
        return {"arrived": self.arrived.to_value(), "closed": self._closed}

    def restore(self, value: Mapping[str, object]) -> None:
        self.arrived, self._earliest = Tags.from_value(value["arrived"]), None  # type: ignore[arg-type]
        self._closed = value["closed"]  # type: ignore[assignment]
