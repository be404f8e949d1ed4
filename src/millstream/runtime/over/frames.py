"""What the frames of all running aggregates share: the interface to the operator, rows that wait for time to release
them, and the table of a frame with a bounded size.

| rows | wait for | then |
|---|---|---|
| `SLIDE` of time (`Slots`) | the end of the slot | the last ones of each slot and partition are emitted |
| `ACTIVE EXPIRATION` (`Leaving`) | the time at which the tuple leaves | they are emitted again, with what is left |

Slots are aligned at the epoch. A row keeps the timestamp of its tuple.

A tuple with timestamp t leaves a frame of d after the tuples with timestamp t + d, so these still count. Its row has
the columns of the tuple, but the time t + d. Of tuples that leave at the same time, the one that arrived first leaves
first. There is no row for a frame that has become empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.algebra.windower import Windower
from millstream.runtime.operator.frames import stack, take, where
from millstream.runtime.over.partitions import Arranged, numbered
from millstream.runtime.over.scans import Values
from millstream.runtime.state.table import StateTable

POSITION = "__position"
Taken = tuple[list[pl.Series], Values | None]
"""Results, and the tuples that have them: a mask, or places, where a tuple may have several; None: all, one each."""


class Slots:
    """The rows of slots that have not ended, at most one a partition."""

    def __init__(self, schema: Mapping[str, pl.DataType], partition: Sequence[str], slots: Windower) -> None:
        self.table, self.slots = StateTable(schema), slots
        self._partition = list(partition)

    @property
    def oldest(self) -> int:
        """The lowest timestamp of the rows held back."""
        times = self.table.frame().get_column(TS)
        return int(times.to_numpy().min()) if len(times) else FOREVER

    @property
    def needs(self) -> int:
        """The first time at which a row held back is emitted."""
        return self.slots.following(self.oldest) if len(self.table) else FOREVER

    def withheld(self) -> pl.DataFrame:
        """Return the rows held back."""
        return self.table.frame()

    def take(self, rows: pl.DataFrame | None, now: int) -> pl.DataFrame | None:
        """Add rows; return the last ones of the slots that have ended by now."""
        if rows is None and now < self.needs:
            return None
        held = self.table.frame()
        both = held if rows is None else stack([held, rows]) if held.height else rows
        if not both.height:
            return None
        ends = self.slots.following(both.get_column(TS).to_numpy())
        arranged = Arranged.by(numbered(both, self._partition))
        last = arranged.placed(arranged.ends(ends[arranged.order]))
        ended = last & (ends <= now)
        self.table.replace(where(both, last & ~ended))
        return where(both, ended) if ended.any() else None


class Leaving:
    """Tuples that have not left a frame of this length, in the order of time; `times` are their columns of times."""

    def __init__(self, table: StateTable, times: Iterable[str], length: int) -> None:
        self.table = table
        self._times, self._length = list(times), length

    @property
    def oldest(self) -> int:
        """The first time at which a tuple leaves."""
        return int(self.table.frame().item(0, TS)) + self._length if len(self.table) else FOREVER

    @property
    def needs(self) -> int:
        """The time at which it is known that no other tuple precedes the first expiry."""
        return self.oldest + 1 if len(self.table) else FOREVER

    def withheld(self) -> pl.DataFrame:
        """Return the rows of tuples that have not left, without results."""
        return self.moved(self.table.frame())

    def moved(self, tuples: pl.DataFrame) -> pl.DataFrame:
        """Return tuples with the time at which they leave."""
        later = [(pl.col(name).to_physical() + self._length).cast(tuples.schema[name]) for name in self._times]
        return tuples.with_columns(*later, pl.col(TS) + self._length)


class Frames(ABC):
    """The frames of all partitions."""

    held: Slots | Leaving | None = None
    """What holds back rows until time releases them."""

    @abstractmethod
    def take(self, rows: pl.DataFrame) -> Taken:
        """Add tuples, in the order of time."""

    def release(self, made: pl.DataFrame | None, now: int) -> pl.DataFrame | None:
        """Return the rows to emit now; `made` are those of the tuples that have come."""
        return self.held.take(made, now) if isinstance(self.held, Slots) else made

    @abstractmethod
    def purge(self, now: int) -> None:
        """Purge the tuples that no frame of a tuple at `now`, or later, has."""

    @abstractmethod
    def close(self, closed: Punctuations) -> None:
        """Purge the partitions that match."""

    @abstractmethod
    def tables(self) -> Mapping[str, StateTable]: ...

    def scalars(self) -> dict[str, Any]:
        return {}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:  # noqa: B027 - most have none
        """Restore the values that `scalars` returned, among others."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of tuples held, or of partitions."""


class Bounded(Frames):
    """Frames of a bounded size: a table has the tuples that later frames may have. `numbered`: each has its number in
    its partition."""

    def __init__(
        self, kept: Mapping[str, pl.DataType], partition: Sequence[str], frame: Frame, *, numbered: bool
    ) -> None:
        assert frame.size is not None
        self._frame, self._size = frame, frame.size
        self._partition, self._read = list(partition), list(kept)
        self._kept = max(self._size, 0 if frame.slide is None else 1)
        """With ROWS: the number of tuples to hold for each partition."""
        self.table = StateTable({**kept, POSITION: pl.Int64()} if numbered else kept)

    def _rebuild(self) -> None:
        """Build anew what is derived from the table."""

    def purge(self, now: int) -> None:
        if now == FOREVER:
            self.table.replace(self.table.empty)
            self._rebuild()
        elif not self._frame.rows and now > NEVER + self._size:
            self.table.purge_below(TS, now - self._size)

    def close(self, closed: Punctuations) -> None:
        if len(closed) and len(self.table):
            gone = closed.match(self.table.frame())
            if gone.any():
                self.table.keep(~gone)
                self._rebuild()

    def tables(self) -> Mapping[str, StateTable]:
        return {"window": self.table}

    def count(self) -> int:
        return len(self.table)


def with_results(
    rows: pl.DataFrame, results: Iterable[pl.Series], chosen: Values | None, names: Iterable[str]
) -> pl.DataFrame | None:
    """Return these columns of the tuples that have results, and of the results."""
    if chosen is not None:
        rows = where(rows, chosen) if chosen.dtype == np.bool_ else take(rows, chosen)
        if not rows.height:
            return None
    columns = {series.name: series for series in (*rows.get_columns(), *results)}
    return pl.DataFrame([columns[name] for name in names])


def merged_by_time(arrived: pl.DataFrame | None, gone: pl.DataFrame | None) -> pl.DataFrame | None:
    """Return rows of arrivals and expiries in the order of time; of equal times arrivals precede."""
    if arrived is None or gone is None:
        return gone if arrived is None else arrived
    both = pl.concat([arrived, gone])
    order = np.argsort(both.get_column(TS).to_numpy(), kind="stable")
    return both[order]
