"""Calls that are computed of all tuples of a frame at once, and LAG, which reads one tuple.

The tuples of every frame are taken out, in portions, and grouped by frame: the reductions of the aggregate function
apply as they do to groups. So every function that is registered can run, at a cost in proportion to the frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.arrays import Places
from millstream.algebra.schema import TS
from millstream.runtime.aggregate.overflow import ResultCheck
from millstream.runtime.operator.frames import pick, take
from millstream.runtime.over.ranges import Ranges
from millstream.runtime.over.rings import spans

_FRAME = "__frame"
PORTION = 1 << 20
"""Number of tuples that are taken out at once, unless a single frame has more."""


class RangeCall(ABC):
    """A call that is computed of ranges."""

    def __init__(self, call: AggregateCall) -> None:
        self.call = call

    unfit: pl.DataFrame | None = None
    """The reasons of the last results that do not fit; None: all fit."""

    @abstractmethod
    def results(self, ranges: Ranges) -> pl.Series:
        """Return the result of each range."""


class Sliced(RangeCall):
    def __init__(self, call: AggregateCall, partition: Sequence[str]) -> None:
        super().__init__(call)
        self._read = [*dict.fromkeys([*call.columns, TS])]
        self._check = ResultCheck([call], partition)
        self._partition = list(partition)

    def results(self, ranges: Ranges) -> pl.Series:
        names = dict.fromkeys([*self._read, *self._partition])
        tuples = take(pick(ranges.of.tuples, names), ranges.of.order)
        made = [self._portion(tuples, ranges.first[part], ranges.last[part]) for part in _portions(ranges)]
        self.unfit = None
        if any(reasons.null_count() < len(reasons) for _, reasons in made):
            self.unfit = pl.DataFrame([pl.concat([reasons for _, reasons in made])])
        return pl.concat([m for m, _ in made]) if made else pl.Series(self.call.name, [], dtype=self.call.type.polars)

    def _portion(self, tuples: pl.DataFrame, first: Places, last: Places) -> tuple[pl.Series, pl.Series]:
        """Return the results of some ranges, and the reasons of those that do not fit."""
        lengths = last - first + 1
        frames = take(tuples, spans(first, lengths)).with_columns(
            pl.Series(_FRAME, np.repeat(np.arange(len(first)), lengths))
        )
        reductions = [reduction.expression() for reduction in self.call.reductions()]
        by = [pl.col(name).first() for name in self._partition if name not in {r.name for r in self.call.reductions()}]
        partials = frames.group_by(_FRAME, maintain_order=True).agg(*reductions, *by)
        unfit = self._check(partials)
        if unfit is None:
            reasons = pl.Series(self.call.name, [None], dtype=pl.String).new_from_index(0, partials.height)
        else:
            reasons = unfit.to_series()
        return partials.select(self.call.result().alias(self.call.name)).to_series(), reasons


def _portions(ranges: Ranges) -> Iterator[slice]:
    """Yield slices of the ranges, whose tuples are about `PORTION`."""
    ends = np.cumsum(ranges.last - ranges.first + 1)
    start, count = 0, len(ends)
    while start < count:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + PORTION, side="right")))
        yield slice(start, stop)
        start = stop


class Lag(RangeCall):
    """The value of the first tuple of a frame of n rows, if it has n before its last."""

    def results(self, ranges: Ranges) -> pl.Series:
        assert self.call.argument is not None
        (offset,) = self.call.parameters
        column = ranges.of.tuples.get_column(self.call.argument)
        found = column.gather(ranges.of.order[ranges.first])
        return found.set(pl.Series(ranges.last - ranges.first < offset), None).alias(self.call.name)
