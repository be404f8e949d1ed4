"""Frames of a bounded size, `ROWS k` and `RANGE d`: the tuples that later frames may have are held.

A step arranges the tuples held and the new ones by partition; the frame of a new tuple is then a range (`ranges.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.arrays import Mask
from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.operator.frames import pick, stack, where
from millstream.runtime.over.folded import REASON, Folded, as_reasons, foldable, refuse, split_reasons
from millstream.runtime.over.frames import POSITION, Bounded, Leaving, Taken, merged_by_time, with_results
from millstream.runtime.over.partitions import Arranged
from millstream.runtime.over.ranges import Arrangement, Ranges
from millstream.runtime.over.ranked import ranked
from millstream.runtime.over.sliced import Lag, RangeCall, Sliced


class Windows(Bounded):
    """The windows of all partitions. With ROWS and a slide each tuple held has its number in its partition."""

    def __init__(self, schema: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[AggregateCall]) -> None:
        read = dict.fromkeys([*partition, *(name for call in calls for name in call.columns), TS])
        kept = {name: schema.polars[name] for name in (schema.polars if frame.active else read)}
        super().__init__(kept, partition, frame, numbered=frame.rows and frame.slide is not None)
        self._names = [call.name for call in calls]
        self._folded = Folded([call for call in calls if foldable(call)], partition)
        self._others = [_of_ranges(call, partition) for call in calls if not foldable(call)]
        # a result that does not fit is an error, also of a tuple that is not the last one of its slot
        self._slots = frame.slots if all(call.fits() is None for call in calls) else None

    def take(self, rows: pl.DataFrame) -> Taken:
        held, new = self.table.frame(), pick(rows, self._read)
        both = stack([pick(held, self._read), new]) if held.height else new
        arrangement = Arrangement(both, self._partition, self._frame)
        place = arrangement.arranged.placed(np.arange(both.height))[held.height :]
        ends = self._store(held, new, arrangement.arranged)
        if ends is None and self._slots is not None and arrangement.times is not None:
            # of the tuples that have come by now
            ends = arrangement.arranged.placed(arrangement.arranged.ends(self._slots.closed(arrangement.times)))
        emitted = None if ends is None else ends[held.height :]
        place = place if emitted is None else place[emitted]
        return self._results(arrangement.frames(place)) if len(place) else [], emitted

    def _results(self, ranges: Ranges) -> list[pl.Series]:
        merged = {fold: ranges.merged(fold) for fold in self._folded.folds}
        places = ranges.of.order[ranges.last]
        keys = [ranges.of.tuples.get_column(name).gather(places) for name in self._partition]
        made = {series.name: series for series in self._folded.results(merged, keys)}
        made |= {other.call.name: other.results(ranges) for other in self._others}
        reasons = [series for name, series in made.items() if name.startswith(REASON)]
        reasons += [series for other in self._others for series in as_reasons(other.unfit)]
        return [*(made[name] for name in self._names), *reasons]

    def _store(self, held: pl.DataFrame, new: pl.DataFrame, arranged: Arranged) -> Mask | None:
        """Store the new tuples and purge those that no later frame has; return the tuples that end a slot of ROWS."""
        if not self._frame.rows:
            self.table.append(new)
            return None
        kept = arranged.placed(arranged.left() <= self._kept)
        emitted = None
        if self._frame.slide is not None:
            first = arranged.firsts
            before = np.zeros(len(first), dtype=np.int64)
            known = first < held.height
            before[known] = held.get_column(POSITION).to_numpy()[first[known]]
            positions = arranged.placed(arranged.positions(before))
            emitted = (positions + 1) % self._frame.slide == 0
            new = new.with_columns(pl.Series(POSITION, positions[held.height :]))
        if held.height:
            self.table.keep(pl.Series(kept[: held.height]))
        self.table.append(where(new, kept[held.height :]))
        return emitted


class ActiveWindows(Windows):
    """The windows of all partitions, whose tuples are emitted again when they leave, with these columns."""

    def __init__(
        self,
        schema: Schema,
        partition: Sequence[str],
        frame: Frame,
        calls: Sequence[AggregateCall],
        columns: Iterable[str],
    ) -> None:
        super().__init__(schema, partition, frame, calls)
        self._columns = list(columns)
        self.held: Leaving = Leaving(self.table, schema.times, self._size)

    def release(self, made: pl.DataFrame | None, now: int) -> pl.DataFrame | None:
        return merged_by_time(made, self._gone(now)) if len(self.table) and now >= self.held.needs else made

    def _gone(self, now: int) -> pl.DataFrame | None:
        """Return a row, with results, for each tuple that has left by now; they stay in the table."""
        tuples = self.table.frame()
        arrangement = Arrangement(tuples, self._partition, self._frame)
        leaving = tuples.get_column(TS).to_numpy() < (now - self._size if now != FOREVER else FOREVER)
        place = arrangement.arranged.placed(np.arange(tuples.height))
        ranges = arrangement.remainders(place[leaving])
        left = ranges.first <= ranges.last
        if not left.any():
            return None
        ranges = type(ranges)(arrangement, ranges.first[left], ranges.last[left])
        leaving[leaving] = left
        results, unfit = split_reasons(self._results(ranges))
        refuse(unfit)
        return with_results(self.held.moved(where(tuples, leaving)), results, None, self._columns)

    def close(self, closed: Punctuations) -> None:
        """A closed partition still owes its expiries."""


def _of_ranges(call: AggregateCall, partition: Sequence[str]) -> RangeCall:
    return Lag(call) if call.function == "LAG" else ranked(call) or Sliced(call, partition)
