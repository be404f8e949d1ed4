"""Active expiration: a tuple that leaves the frame has a result too, of what is left of its partition's frame.

A tuple with timestamp t leaves a frame of d after the tuples with timestamp t + d, so these still count. Its row has
the columns of the tuple, but the time t + d. Of tuples that leave at the same time, the one that arrived first leaves
first. There is no row for a frame that has become empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.operator.frames import where
from millstream.runtime.over.folded import refuse, split_reasons
from millstream.runtime.over.ranges import Arrangement
from millstream.runtime.over.windows import Windows


class ActiveWindows(Windows):
    """The windows of all partitions, whose tuples are emitted again when they leave."""

    def __init__(self, schema: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[AggregateCall]) -> None:
        super().__init__(schema, partition, frame, calls)
        self._times = list(schema.times)

    @property
    def oldest(self) -> int:
        """The first time at which a tuple leaves."""
        return int(self.table.frame().item(0, TS)) + self._size if len(self.table) else FOREVER

    @property
    def needs(self) -> int:
        """The time at which it is known that no other tuple precedes the first expiry."""
        return self.oldest + 1 if len(self.table) else FOREVER

    def withheld(self) -> pl.DataFrame:
        """Return the rows of tuples that have not left, without results."""
        return self._moved(self.table.frame())

    def release(self, now: int) -> pl.DataFrame | None:
        """Return a row, with results, for each tuple that has left by now; they stay in the table."""
        if not len(self.table) or now < self.needs:
            return None
        tuples = self.table.frame()
        arrangement = Arrangement(tuples, self._partition, self._frame)
        leaving = tuples.get_column(TS).to_numpy() < (now - self._size if now != FOREVER else FOREVER)
        place = np.empty(tuples.height, dtype=np.int64)
        place[arrangement.order] = np.arange(tuples.height)
        ranges = arrangement.remainders(place[leaving])
        left = ranges.first <= ranges.last
        if not left.any():
            return None
        ranges = type(ranges)(arrangement, ranges.first[left], ranges.last[left])
        leaving[leaving] = left
        gone = self._moved(where(tuples, leaving))
        results, unfit = split_reasons(self._results(ranges))
        refuse(unfit)
        return pl.DataFrame([*gone.get_columns(), *results])

    def _moved(self, tuples: pl.DataFrame) -> pl.DataFrame:
        """Return tuples with the time at which they leave."""
        later = [(pl.col(name).to_physical() + self._size).cast(tuples.schema[name]) for name in self._times]
        return tuples.with_columns(*later, pl.col(TS) + self._size)

    def close(self, closed: Punctuations) -> None:
        """A closed partition still owes its expiries."""


def merged_by_time(arrived: pl.DataFrame | None, gone: pl.DataFrame | None) -> pl.DataFrame | None:
    """Return rows of arrivals and expiries in the order of time; of equal times arrivals precede."""
    if arrived is None or gone is None:
        return gone if arrived is None else arrived
    both = pl.concat([arrived, gone])
    order = np.argsort(both.get_column(TS).to_numpy(), kind="stable")
    return both[order]
