"""Frames without a beginning: a partial result for each partition, which every tuple of the partition extends.

A checkpoint writes the partitions that have changed. Older rows of a partition stay in the table until they are as many
as the partitions; the last row of a partition counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.arrays import Places
from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, Schema
from millstream.runtime.operator.frames import take
from millstream.runtime.over.folded import Folded, chosen
from millstream.runtime.over.folds import BOTTOM, TOP, Arrays, Extremes, Fold
from millstream.runtime.over.frames import Frames, Taken
from millstream.runtime.over.partitions import Arranged, Partitions
from millstream.runtime.over.rings import extended
from millstream.runtime.over.scans import Values
from millstream.runtime.state.table import StateTable

COUNT = "__count"
SPARE = 1 << 10
"""Superseded rows that are always tolerated."""


class Totals(Frames):
    """The totals of all partitions for `UNBOUNDED PRECEDING`."""

    def __init__(self, schema: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[AggregateCall]) -> None:
        self._frame, self._partition, self._schema = frame, list(partition), schema.polars
        self._folded = Folded(calls, partition)
        arrays = [(fold, place) for fold in self._folded.folds for place in range(len(fold.dtypes))]
        stored = {f"__total_{n}": stored_type(fold, place) for n, (fold, place) in enumerate(arrays)}
        self.table = StateTable({name: self._schema[name] for name in partition} | stored | {COUNT: pl.Int64()})
        self._stored = list(stored)
        self._loaded = False
        self._reset()

    def _reset(self) -> None:
        self._partitions = Partitions(self._partition, self._schema)
        self._counts = np.zeros(0, dtype=np.int64)
        self._totals: list[Arrays] = [
            tuple(np.zeros(0, dtype=dtype) for dtype in fold.dtypes) for fold in self._folded.folds
        ]

    def take(self, rows: pl.DataFrame) -> Taken:
        codes, arranged = self._arrange(rows)
        starts, before = arranged.starts, self._counts[codes[arranged.firsts]]
        ran = self._merge(rows, codes, arranged.order, starts, starts[before > 0], arranged.last)
        merged = {fold: tuple(map(arranged.placed, arrays)) for fold, arrays in ran.items()}
        emitted = None
        if self._frame.rows and self._frame.slide is not None:
            emitted = arranged.placed((arranged.positions(before) + 1) % self._frame.slide == 0)
        self._store(codes, arranged)
        results = self._folded.results(merged, [rows.get_column(name) for name in self._partition])
        return chosen(results, emitted), emitted

    def _arrange(self, rows: pl.DataFrame) -> tuple[Places, Arranged]:
        """Return the number of the partition of each tuple, and the tuples by partition."""
        self._load()
        codes = self._partitions.codes(rows)
        self._grow(self._partitions.count)
        return codes, Arranged.by(codes)

    def _merge(
        self, rows: pl.DataFrame, codes: Places, places: Places, starts: Places, known: Places, last: Places
    ) -> dict[Fold, Arrays]:
        """Return the partial results of segments of the tuples at these places, up to each tuple. The `known` segments
        continue the totals of their partitions; the new totals are those of the `last` tuples."""
        merged: dict[Fold, Arrays] = {}
        before, after = codes[places[known]], codes[places[last]]
        for fold, totals in zip(self._folded.folds, self._totals, strict=True):
            values = tuple(value[places] for value in fold.lift(rows))
            fold.extend(tuple(total[before] for total in totals), values, known)
            merged[fold] = fold.running(values, starts)
            for total, value in zip(totals, merged[fold], strict=True):
                total[after] = value[last]
        return merged

    def _grow(self, count: int) -> None:
        """Make room for this many partitions."""
        if count > len(self._counts):
            self._counts = extended(self._counts, count)
            self._totals = [tuple(extended(total, count) for total in totals) for totals in self._totals]

    def _store(self, codes: Places, arranged: Arranged) -> None:
        """Count tuples, and store what has changed."""
        touched = codes[arranged.firsts]
        self._counts[touched] += arranged.lengths
        if len(self.table) + len(touched) > 2 * self._partitions.count + SPARE:
            self.table.replace(self._rows(np.arange(self._partitions.count)))
        else:
            self.table.append(self._rows(touched))

    def _rows(self, codes: Places) -> pl.DataFrame:
        keys = take(self._partitions.keys, codes).get_columns() if self._partition else []
        stored = zip(self._stored, (total for totals in self._totals for total in totals), strict=True)
        totals = [to_column(name, self.table.schema[name], total[codes]) for name, total in stored]
        return pl.DataFrame([*keys, *totals, pl.Series(COUNT, self._counts[codes])])

    def _load(self) -> None:
        """Read the totals of a table that was restored."""
        if self._loaded:
            return
        self._loaded = True
        frame = self.table.frame()
        if not frame.height:
            return
        codes = self._partitions.codes(frame)
        self._grow(self._partitions.count)
        # Of several values for one place, the last one is assigned.
        self._counts[codes] = frame.get_column(COUNT).to_numpy()
        names = iter(self._stored)
        for fold, totals in zip(self._folded.folds, self._totals, strict=True):
            for total in totals:
                total[codes] = from_column(fold, frame.get_column(next(names)))

    def purge(self, now: int) -> None:
        """Purge everything at the end of the stream; until then, time purges nothing."""
        if now == FOREVER:
            self.table.replace(self.table.empty)
            self._reset()

    def close(self, closed: Punctuations) -> None:
        self._load()
        if not len(closed) or not self._partition or not self._partitions.count:
            return
        kept = ~closed.match(self._partitions.keys).to_numpy()
        if kept.all():
            return
        self.table.keep(~closed.match(self.table.frame()))
        count = self._partitions.count
        self._partitions.keep(kept)
        self._counts = self._counts[:count][kept]
        self._totals = [tuple(total[:count][kept] for total in totals) for totals in self._totals]

    def tables(self) -> Mapping[str, StateTable]:
        return {"totals": self.table}

    def count(self) -> int:
        self._load()
        return int(np.count_nonzero(self._counts))


_STORED = {"f": pl.Float64(), "i": pl.Int64(), "b": pl.Boolean()}


def stored_type(fold: Fold, place: int) -> pl.DataType:
    """The type of the column that stores an array of a fold."""
    return _STORED.get(fold.dtypes[place].kind, fold.type)


def to_column(name: str, type_: pl.DataType, values: Values) -> pl.Series:
    """Return the column that stores an array of a fold."""
    if values.dtype != object:
        return pl.Series(name, values)
    return pl.Series(name, [None if value is TOP or value is BOTTOM else value for value in values], dtype=type_)


def from_column(fold: Fold, column: pl.Series) -> Values:
    """Return an array of a fold from the column that stores it."""
    if column.dtype in _STORED.values():
        return column.to_numpy()
    made = np.empty(len(column), dtype=object)
    made[:] = column.to_list()
    if isinstance(fold, Extremes):
        made[column.is_null().to_numpy()] = TOP if fold.least else BOTTOM
    return made
