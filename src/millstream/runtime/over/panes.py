"""Slides of rows over folds: a partial result for each pane, in place of the tuples.

A frame of w tuples that slides by s < w consists of panes of g tuples, where g divides w and s. Each partition has the
partial result of its current pane, and those of the last w / g panes, over which a frame of `sliding.py` slides. If s
is w or more (a tumble), the pane is the slot: its first s - w tuples are left out, and no other pane is held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.arrays import Places
from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import TS, Schema
from millstream.runtime.over.folded import Folded
from millstream.runtime.over.folds import Arrays, Fold
from millstream.runtime.over.frames import Taken
from millstream.runtime.over.sliding import Sliding
from millstream.runtime.over.totals import Totals, from_column, stored_type, to_column
from millstream.runtime.state.table import StateTable


@dataclass(frozen=True, slots=True)
class Stored(Fold):
    """A fold of panes, whose partial results are in columns."""

    inner: Fold
    names: tuple[str, ...]

    @property
    def original(self) -> Fold:
        return self.inner

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return self.inner.dtypes

    def lift(self, tuples: pl.DataFrame) -> Arrays:
        return tuple(from_column(self.inner, tuples.get_column(name)) for name in self.names)

    def merge(self, left: Arrays, right: Arrays) -> Arrays:
        return self.inner.merge(left, right)

    def running(self, values: Arrays, starts: Places) -> Arrays:
        return self.inner.running(values, starts)

    def backwards(self, values: Arrays, starts: Places) -> Arrays:
        return self.inner.backwards(values, starts)


class OfPanes(Sliding):
    """The last panes of all partitions."""

    def __init__(self, schema: Schema, partition: Sequence[str], frame: Frame, folded: Folded) -> None:
        names = iter(f"__pane_{number}" for number in range(1 << 30))
        folds = [Stored(None, None, fold.type, fold, tuple(next(names) for _ in fold.dtypes)) for fold in folded.folds]
        columns = {name: stored_type(f.inner, place) for f in folds for place, name in enumerate(f.names)}
        kept = {name: schema.polars[name] for name in partition} | columns | {TS: pl.Int64()}
        self.of_panes = folds
        super().__init__(kept, partition, frame, folded, folds)


class Panes(Totals):
    """The current pane of each partition, and the last ones before it."""

    def __init__(self, schema: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[AggregateCall]) -> None:
        super().__init__(schema, partition, frame, calls)
        assert frame.size is not None and frame.slide is not None
        width, slide = frame.size + 1, frame.slide
        self._pane = frame.pane
        self._skipped = max(slide - width, 0)
        """Number of tuples at the start of a pane that are left out."""
        outer = Frame("ROWS", width // self._pane - 1, slide // self._pane)
        self._outer = None if frame.tumbles else OfPanes(schema, partition, outer, self._folded)

    def take(self, rows: pl.DataFrame) -> Taken:
        codes, arranged = self._arrange(rows)
        before = self._counts[codes[arranged.firsts]]
        position = arranged.positions(before)
        counted = np.flatnonzero(position % self._pane >= self._skipped)
        ended = position[counted] % self._pane == self._pane - 1
        merged = self._of_panes(rows, codes, arranged.order[counted], position[counted], arranged.each(before)[counted])
        self._store(codes, arranged)
        places = arranged.order[counted[ended]]
        by_arrival = np.argsort(places)
        panes = {fold: tuple(own[ended][by_arrival] for own in arrays) for fold, arrays in merged.items()}
        emitted = np.zeros(rows.height, dtype=np.bool_)
        emitted[places] = True
        keys = [rows.get_column(name).gather(places[by_arrival]) for name in self._partition]
        if self._outer is None:
            return self._folded.results(panes, keys), emitted
        columns = [
            to_column(name, stored_type(stored.inner, place), panes[stored.inner][place])
            for stored in self._outer.of_panes
            for place, name in enumerate(stored.names)
        ]
        times = rows.get_column(TS).gather(places[by_arrival])
        results, last = self._outer.take(pl.DataFrame([*keys, *columns, times]))
        assert last is not None
        emitted[np.sort(places)] = last
        return results, emitted

    def _of_panes(
        self, rows: pl.DataFrame, codes: Places, places: Places, position: Places, before: Places
    ) -> dict[Fold, Arrays]:
        """Return the partial results of panes up to each counted tuple. `before`: the number of tuples that its
        partition had."""
        own, pane = codes[places], position // self._pane
        ends = np.ones(len(places) + 1, dtype=np.bool_)
        ends[1:-1] = own[1:] != own[:-1]
        last = np.flatnonzero(ends[1:])
        ends[1:-1] |= pane[1:] != pane[:-1]
        starts = np.flatnonzero(ends[:-1])
        held = before[starts]
        known = starts[(held % self._pane > self._skipped) & (pane[starts] == held // self._pane)]
        return self._merge(rows, codes, places, starts, known, last)

    def purge(self, now: int) -> None:
        super().purge(now)
        if self._outer is not None:
            self._outer.purge(now)

    def close(self, closed: Punctuations) -> None:
        super().close(closed)
        if self._outer is not None:
            self._outer.close(closed)

    def tables(self) -> Mapping[str, StateTable]:
        own = super().tables()
        return own if self._outer is None else {**own, **self._outer.tables()}

    def count(self) -> int:
        return super().count() + (0 if self._outer is None else self._outer.count())
