"""Frames of a bounded size whose calls are all folds: a step costs as much as its tuples, whatever the frame has.

The blocks of `ranges.py`, kept from step to step. Each partition has the partial result of its current block, and a
ring with a cell for each tuple held: its own partial result while its block is the current one, and from the end of the
block on, the partial result from it to the end of the block. A new tuple merges the cell of the first tuple of its
frame, if that lies in the block before, with the partial result of its own block. Each cell is read twice: at the end
of its block, and when it is the first of a frame.

The table has the tuples held, from which all of this is built after a restart, and again if the rings are mostly
garbage. With ROWS the tuples that have left stay in the table until they are as many as those held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.arrays import Mask, Places
from millstream.algebra.frame import Frame
from millstream.algebra.schema import TS, Schema
from millstream.runtime.operator.frames import pick, where
from millstream.runtime.over.folded import Folded, chosen
from millstream.runtime.over.folds import Arrays, Fold, Sums
from millstream.runtime.over.frames import POSITION, Bounded, Taken
from millstream.runtime.over.partitions import Arranged, Partitions
from millstream.runtime.over.rings import Rings, extended, spans
from millstream.runtime.over.scans import first_since, lengths_of

SMALL = 1 << 31
"""As many integers below this as memory can have do not add up to more than 64 bits."""
SPARE = 1 << 12
"""Garbage that is always tolerated."""


@dataclass(slots=True)
class _Step:
    """The tuples of a step, by partition. Arrays of tuples are in this order, those of partitions in the order of
    `touched`."""

    arranged: Arranged
    touched: Places
    before: Places
    """The position of the first of these tuples in each partition."""
    position: Places
    times: Places | None
    block: Places
    begin: Places
    """The position at which the block of each tuple begins."""
    changes: Mask
    """True for a tuple that begins a block."""
    last: Places
    """The last of these tuples in each partition."""

    def each(self, of_partition: Places) -> Places:
        return self.arranged.each(of_partition)

    def behind(self, held: Places) -> tuple[Places, Places, Places]:
        """Return how to put tuples held, by number for each partition, before the new ones of the partition: the places
        of those held, those of the new ones, and the starts of the partitions."""
        lengths = held + self.arranged.lengths
        starts = np.cumsum(lengths) - lengths
        return spans(starts, held), np.arange(len(self.position)) + self.each(np.cumsum(held)), starts


class Sliding(Bounded):
    """The windows of all partitions, for calls that are computed of folds. `kept` are the columns to hold; `folds` are
    those of the calls, or compute the same of other columns."""

    def __init__(
        self,
        kept: Mapping[str, pl.DataType],
        partition: Sequence[str],
        frame: Frame,
        folded: Folded,
        folds: Sequence[Fold],
    ) -> None:
        super().__init__(kept, partition, frame, numbered=frame.rows)
        self._schema, self._folded, self._all = dict(kept), folded, list(folds)
        self._assumed = {fold for fold in self._all if isinstance(fold, Sums) and fold.of != "total"}
        self._assumed -= {fold for fold in self._assumed if fold.filter is not None}
        """Folds that need not be computed as long as no argument is NULL, or none is a large integer."""
        self._built = False
        self._reset()

    @classmethod
    def of(cls, schema: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[AggregateCall]) -> Sliding:
        """Return the windows of calls over tuples."""
        read = dict.fromkeys([*partition, *(name for call in calls for name in call.columns), TS])
        folded = Folded(calls, partition)
        return cls({name: schema.polars[name] for name in read}, partition, frame, folded, folded.folds)

    def _reset(self) -> None:
        self._partitions = Partitions(self._partition, self._schema)
        nothing = np.zeros(0, dtype=np.int64)
        self._count, self._first, self._begin, self._block = nothing, nothing, nothing, nothing
        """For each partition: the position of its next tuple, of its oldest one, of the begin of its current block, and
        the number of this block."""
        folds = self._folds = [fold for fold in self._all if fold not in self._assumed]
        self._current: list[Arrays] = [tuple(np.zeros(0, dtype) for dtype in fold.dtypes) for fold in folds]
        self._rings = Rings([np.dtype(np.int64), *(dtype for fold in folds for dtype in fold.dtypes)])

    # --- a step -------------------------------------------------------------------------------------------------------

    def take(self, rows: pl.DataFrame) -> Taken:
        self._build()
        tuples = pick(rows, self._read)
        if self._surprised(tuples):
            self._rebuild()
        step, low, merged = self._advance(tuples, self._partitions.codes(tuples))
        for fold in self._assumed:
            if fold.of == "count":
                merged[fold] = (step.position - low + 1,)
            else:
                merged[fold] = (merged[replace(fold, of="total")][0] >> 32,)
        placed = {fold.original: tuple(map(step.arranged.placed, arrays)) for fold, arrays in merged.items()}
        results = self._folded.results(placed, [rows.get_column(name) for name in self._partition])
        emitted = None
        if self._frame.rows:
            position = step.arranged.placed(step.position)
            emitted = None if self._frame.slide is None else (position + 1) % self._frame.slide == 0
            held = step.arranged.placed(step.position >= step.each(self._first[step.touched]))
            tuples = tuples.with_columns(pl.Series(POSITION, position))
            tuples = tuples if held.all() else where(tuples, held)
        self.table.append(tuples)
        held_now = self.count()
        if self._frame.rows and len(self.table) > 2 * held_now + SPARE:
            self._thin()
        if self._rings.used > 4 * held_now + SPARE:
            self._rebuild()
        return chosen(results, emitted), emitted

    def _surprised(self, tuples: pl.DataFrame) -> bool:
        """Return whether these tuples have NULLs or large integers for the first time."""
        wrong = {fold for fold in self._assumed if not _holds(fold, tuples)}
        self._assumed -= wrong
        return bool(wrong)

    def _advance(self, tuples: pl.DataFrame, codes: Places) -> tuple[_Step, Places, dict[Fold, Arrays]]:
        """Add tuples; return the first tuples and the merged folds of their frames, by partition."""
        step = self._step(tuples, codes)
        starts = np.flatnonzero(step.changes | (np.arange(len(step.block)) == step.arranged.start_of))
        low = self._low(step)
        crosses = np.flatnonzero(low < step.begin)
        values = [tuple(value[step.arranged.order] for value in fold.lift(tuples)) for fold in self._folds]
        ends = self._end_blocks(step, values)
        merged: dict[Fold, Arrays] = {}
        for number, fold in enumerate(self._folds):
            ahead = fold.running(self._continued(step, number, values[number]), starts)
            for current, value in zip(self._current[number], ahead, strict=True):
                current[step.touched] = value[step.last]
            merged[fold] = ahead
        if len(crosses):
            behind = self._cells(step, low, crosses, ends)
            for (fold, ahead), found in zip(merged.items(), behind, strict=True):
                fold.extend(found, ahead, crosses)
        self._hold(step, low, values, ends)
        return step, low, merged

    def _step(self, tuples: pl.DataFrame, codes: Places) -> _Step:
        self._grow(self._partitions.count)
        arranged = Arranged.by(codes)
        starts = arranged.starts
        touched = codes[arranged.firsts]
        before = self._count[touched]
        position = arranged.positions(before)
        times = None if self._frame.rows else tuples.get_column(TS).to_numpy()[arranged.order]
        block = (position if times is None else times) // (self._size + 1)
        continues = (self._first[touched] < before) & (block[starts] == self._block[touched])
        changes = np.empty(len(codes), dtype=np.bool_)
        changes[1:] = block[1:] != block[:-1]
        changes[starts] = ~continues
        opening = np.flatnonzero(changes | (np.arange(len(codes)) == arranged.start_of))
        begin = position[opening]
        begin[~changes[opening]] = self._begin[touched[continues]]
        begins = np.repeat(begin, lengths_of(opening, len(codes)))
        return _Step(arranged, touched, before, position, times, block, begins, changes, arranged.last)

    def _low(self, step: _Step) -> Places:
        """Return the position of the first tuple of each frame."""
        if step.times is None:
            return np.maximum(step.position - self._size, step.each(self._first[step.touched]))
        first = self._first[step.touched]
        newest = step.times[step.last]
        leaving = self._rings.search(step.touched, first, step.before, newest - self._size) - first
        slots = self._rings.slots(np.repeat(step.touched, leaving), spans(first, leaving))
        old, places, starts = step.behind(leaving)
        times = np.empty(len(places) + len(old), dtype=np.int64)
        times[places], times[old] = step.times, self._rings.columns[0][slots]
        segment = np.repeat(np.arange(len(starts)), leaving + step.arranged.lengths)
        found = first_since(times, segment, step.each(np.arange(len(starts))), step.times - self._size)
        return np.asarray(found - step.each(starts) + step.each(first))

    def _continued(self, step: _Step, number: int, values: Arrays) -> Arrays:
        """Return the folds of the tuples; the first of a partition that continues its block has that of the block."""
        starts = step.arranged.starts
        continues = ~step.changes[starts]
        if not continues.any():
            return values
        starts, touched = starts[continues], step.touched[continues]
        current = tuple(current[touched] for current in self._current[number])
        made = tuple(value.copy() for value in values)
        self._folds[number].extend(current, made, starts)
        return made

    def _end_blocks(self, step: _Step, values: list[Arrays]) -> list[Arrays] | None:
        """Merge the blocks that end backwards: those in the rings in place. Return the merged folds of the new tuples;
        None if no block of theirs ends."""
        closing = (self._first[step.touched] < step.before) & (step.block[step.last] != self._block[step.touched])
        inner = step.block != step.each(step.block[step.last])
        if not closing.any() and not inner.any():
            return None
        oldest = np.maximum(self._begin[step.touched], self._first[step.touched])
        held = np.where(closing, step.before - oldest, 0)
        slots = self._rings.slots(np.repeat(step.touched, held), spans(oldest, held))
        # For each partition the tuples of the block that ends, then the new ones.
        old, places, starts = step.behind(held)
        opening = np.union1d(places[step.changes], starts)
        ends: list[Arrays] = []
        column = 1
        for fold, own in zip(self._folds, values, strict=True):
            both = tuple(np.empty(len(places) + len(old), dtype=dtype) for dtype in fold.dtypes)
            for array, value, ring in zip(both, own, self._rings.columns[column:], strict=False):
                array[places], array[old] = value, ring[slots]
            merged = fold.backwards(both, opening)
            for value in merged:
                self._rings.columns[column][slots] = value[old]
                column += 1
            ends.append(tuple(value[places] for value in merged))
        return ends

    def _cells(self, step: _Step, low: Places, asked: Places, ends: list[Arrays] | None) -> list[Arrays]:
        """Return the folds from the first tuple of each frame to the end of its block."""
        low = low[asked]
        before = step.each(step.before)[asked]
        stored = low < before
        slots = self._rings.slots(step.each(step.touched)[asked[stored]], low[stored])
        places = step.arranged.start_of[asked[~stored]] + (low - before)[~stored]
        found: list[Arrays] = []
        column = 1
        for number, fold in enumerate(self._folds):
            arrays = tuple(np.empty(len(asked), dtype=dtype) for dtype in fold.dtypes)
            for place, array in enumerate(arrays):
                array[stored] = self._rings.columns[column][slots]
                if ends is not None:
                    array[~stored] = ends[number][place][places]
                column += 1
            found.append(arrays)
        return found

    def _hold(self, step: _Step, low: Places, values: list[Arrays], ends: list[Arrays] | None) -> None:
        """Add the tuples that later frames may have to the rings."""
        touched, after = step.touched, step.before + step.arranged.lengths
        first = low[step.last] if step.times is not None else np.maximum(after - self._kept, 0)
        self._rings.reserve(touched, np.maximum(self._first[touched], first), step.before, after - first)
        held = np.flatnonzero(step.position >= step.each(first))
        ended = None if ends is None else (step.block != step.each(step.block[step.last]))[held]
        times = step.position if step.times is None else step.times
        cells: list[np.ndarray] = [times[held]]
        for number, own in enumerate(values):
            for place, value in enumerate(own):
                kept = value[held]
                if ends is not None and ended is not None:
                    kept = np.where(ended, ends[number][place][held], kept)
                cells.append(kept)
        if len(held):
            self._rings.put(self._rings.slots(step.each(touched)[held], step.position[held]), cells)
        self._count[touched], self._first[touched] = after, first
        self._begin[touched], self._block[touched] = step.begin[step.last], step.block[step.last]

    def _grow(self, partitions: int) -> None:
        if partitions > len(self._count):
            arrays = self._count, self._first, self._begin, self._block
            self._count, self._first, self._begin, self._block = (extended(own, partitions) for own in arrays)
            self._current = [tuple(extended(own, partitions) for own in arrays) for arrays in self._current]
            self._rings.grow(len(self._count))

    # --- the table ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        """Build everything from a table that was restored."""
        if not self._built:
            self._built = True
            if len(self.table):
                self._rebuild()

    def _rebuild(self) -> None:
        """Build everything anew from the table, without garbage."""
        tuples = self.table.frame()
        self._surprised(tuples)
        self._reset()
        codes = self._partitions.codes(tuples)
        if self._frame.rows and tuples.height:
            arranged = Arranged.by(codes)
            held = arranged.placed(arranged.left() <= self._kept)
            self.table.keep(pl.Series(held))
            tuples, codes = self.table.frame(), codes[held]
            self._grow(self._partitions.count)
            # Of several values for one place, the last one is assigned: that of the oldest tuple.
            self._count[codes[::-1]] = tuples.get_column(POSITION).to_numpy()[::-1]
            self._first[:] = self._count
        if tuples.height:
            self._advance(tuples, codes)

    def _thin(self) -> None:
        """Drop the tuples that have left from the table of ROWS."""
        tuples = self.table.frame()
        first = self._first[self._partitions.codes(tuples)]
        self.table.keep(tuples.get_column(POSITION) >= pl.Series(first))

    def count(self) -> int:
        if not self._frame.rows:
            return super().count()
        self._build()
        return int(np.minimum(self._count, self._kept).sum())


def _holds(fold: Sums, tuples: pl.DataFrame) -> bool:
    """Return whether a fold need not be computed for these tuples: the frame has as many values as tuples, or its sum
    cannot wrap."""
    column = None if fold.column is None else tuples.get_column(fold.column)
    if column is None or not len(column):
        return True
    if fold.of == "count":
        return not column.null_count()
    least, most = column.min(), column.max()
    return not (isinstance(least, int) and isinstance(most, int)) or (least >= -SMALL and most < SMALL)
