"""Frames of a bounded size, `ROWS k` and `RANGE d`: the tuples that later frames may have are held.

A step arranges the tuples held and the new ones by partition; the frame of a new tuple is then a range (`ranges.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.arrays import Mask, Places
from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.runtime.operator.frames import pick, stack, where
from millstream.runtime.over.folded import REASON, Folded, as_reasons, foldable
from millstream.runtime.over.ranges import Arrangement, Ranges
from millstream.runtime.over.ranked import ranked
from millstream.runtime.over.sliced import Lag, RangeCall, Sliced
from millstream.runtime.state.table import StateTable

POSITION = "__position"


class Windows:
    """The windows of all partitions. With ROWS and a slide each tuple held has its number in its partition."""

    def __init__(self, schema: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[AggregateCall]) -> None:
        assert frame.size is not None
        self._frame, self._size = frame, frame.size
        self._partition = list(partition)
        self._names = [call.name for call in calls]
        self._folded = Folded([call for call in calls if foldable(call)], partition)
        self._others = [_of_ranges(call, partition) for call in calls if not foldable(call)]
        read = dict.fromkeys([*partition, *(name for call in calls for name in call.columns), TS])
        self._read = list(schema.polars) if frame.active else list(read)
        numbers = {POSITION: pl.Int64()} if frame.rows and frame.slide is not None else {}
        self.table = StateTable({name: schema.polars[name] for name in self._read} | numbers)
        # a result that does not fit is an error, also of a tuple that is not the last one of its slot
        self._slots = frame.slots if all(call.fits() is None for call in calls) else None
        self._kept = max(self._size, 1 if numbers else 0)
        """With ROWS: the number of tuples to hold for each partition."""

    def take(self, rows: pl.DataFrame) -> tuple[list[pl.Series], Mask | None]:
        """Add tuples; return the results of those that are emitted, and which these are (None: all)."""
        held, new = self.table.frame(), pick(rows, self._read)
        both = stack([pick(held, self._read), new]) if held.height else new
        arrangement = Arrangement(both, self._partition, self._frame)
        asked = np.flatnonzero(arrangement.order >= held.height)
        place = np.empty(len(asked), dtype=np.int64)
        place[arrangement.order[asked] - held.height] = asked
        ends = self._store(held, new, arrangement)
        emitted = self._slot_ends(arrangement, held.height) if ends is None else ends[held.height :]
        place = place if emitted is None else place[emitted]
        return self._results(arrangement.frames(place)) if len(place) else [], emitted

    def _slot_ends(self, arrangement: Arrangement, held: int) -> Mask | None:
        """Return which new tuples are the last ones of their slots of time so far; None: every result is computed."""
        if self._slots is None or arrangement.times is None:
            return None
        order, slots = arrangement.order, arrangement.times // self._slots
        last = np.ones(len(order), dtype=np.bool_)
        last[:-1] = slots[1:] != slots[:-1]
        last[arrangement.arranged.starts[1:] - 1] = True
        ends = np.empty(len(order), dtype=np.bool_)
        ends[order] = last
        return ends[held:]

    def _results(self, ranges: Ranges) -> list[pl.Series]:
        merged = {fold: ranges.merged(fold) for fold in self._folded.folds}
        places = ranges.of.order[ranges.last]
        keys = [ranges.of.tuples.get_column(name).gather(places) for name in self._partition]
        made = {series.name: series for series in self._folded.results(merged, keys)}
        made |= {other.call.name: other.results(ranges) for other in self._others}
        reasons = [series for name, series in made.items() if name.startswith(REASON)]
        reasons += [series for other in self._others for series in as_reasons(other.unfit)]
        return [*(made[name] for name in self._names), *reasons]

    def _store(self, held: pl.DataFrame, new: pl.DataFrame, arrangement: Arrangement) -> Mask | None:
        """Store the new tuples and purge those that no later frame has; return the tuples that end a slot of ROWS."""
        if not self._frame.rows:
            self.table.append(new)
            return None
        order, arranged = arrangement.order, arrangement.arranged
        left = np.repeat(arranged.starts + arranged.lengths, arranged.lengths) - np.arange(len(order))
        kept = np.empty(len(order), dtype=np.bool_)
        kept[order] = left <= self._kept
        emitted = None
        if self._frame.slide is not None:
            positions = self._positions(held, arrangement)
            emitted = (positions + 1) % self._frame.slide == 0
            new = new.with_columns(pl.Series(POSITION, positions[held.height :]))
        if held.height:
            self.table.keep(pl.Series(kept[: held.height]))
        self.table.append(where(new, kept[held.height :]))
        return emitted

    @staticmethod
    def _positions(held: pl.DataFrame, arrangement: Arrangement) -> Places:
        """Return the number of each tuple in its partition."""
        order, arranged = arrangement.order, arrangement.arranged
        first = order[arranged.starts]
        offset = np.zeros(len(first), dtype=np.int64)
        if held.height:
            known = first < held.height
            offset[known] = held.get_column(POSITION).to_numpy()[first[known]]
        positions = np.empty(len(order), dtype=np.int64)
        positions[order] = np.arange(len(order)) - arranged.start_of + np.repeat(offset, arranged.lengths)
        return positions

    def purge(self, now: int) -> None:
        """Purge the tuples that no frame of a tuple at `now`, or later, has."""
        if now == FOREVER:
            self.table.replace(self.table.frame().clear())
        elif not self._frame.rows and now > NEVER + self._size:
            self.table.purge_below(TS, now - self._size)

    def close(self, closed: Punctuations) -> None:
        """Purge the partitions that match."""
        if len(closed) and len(self.table):
            self.table.keep(~closed.match(self.table.frame()))

    def tables(self) -> Mapping[str, StateTable]:
        return {"window": self.table}

    def count(self) -> int:
        return len(self.table)


def _of_ranges(call: AggregateCall, partition: Sequence[str]) -> RangeCall:
    return Lag(call) if call.function == "LAG" else ranked(call) or Sliced(call, partition)
