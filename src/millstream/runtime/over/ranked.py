"""Quantiles and numbers of distinct values over ranges, by a wavelet matrix: no range is looked at value by value."""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.collected import Quantile
from millstream.algebra.arrays import Integers, Places
from millstream.runtime.over.ranges import Ranges
from millstream.runtime.over.sliced import RangeCall
from millstream.runtime.over.wavelet import Wavelet


def ranked(call: AggregateCall) -> RangeCall | None:
    """Return the computation of a quantile, or of a number of distinct values; None for any other call."""
    function = call.computed
    if isinstance(function, Quantile) and not function.distinct:
        return Quantiles(call, function)
    return CountDistinct(call) if call.function == "COUNT" and call.distinct is not None else None


class _Known:
    """The values of an arrangement that are not NULL, and not left out by FILTER, and the ranges among them."""

    def __init__(self, call: AggregateCall, ranges: Ranges) -> None:
        assert call.argument is not None
        order = ranges.of.order
        column = ranges.of.tuples.get_column(call.argument).gather(order)
        known = column.is_not_null().to_numpy()
        if call.filter is not None:
            known = known & ranges.of.tuples.get_column(call.filter).gather(order).fill_null(False).to_numpy()
        before = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(known, out=before[1:])
        self.values = column.filter(pl.Series(known))
        self.places: Places = np.flatnonzero(known)
        self.first, self.stop = before[ranges.first], before[ranges.last + 1]

    def ranks(self) -> tuple[Integers, pl.Series]:
        """Return the rank of each value, and the values by rank."""
        if self.values.dtype.is_float():
            found, ranks = np.unique(self.values.to_numpy(), return_inverse=True)
            return ranks.astype(np.int64), pl.Series(found)
        ranks = self.values.rank("dense").to_numpy().astype(np.int64) - 1
        return ranks, self.values.unique().sort()


class Quantiles(RangeCall):
    """The value at a share of the values in order; between two of them if the function is not `exact`."""

    def __init__(self, call: AggregateCall, function: Quantile) -> None:
        super().__init__(call)
        self._function = function

    def results(self, ranges: Ranges) -> pl.Series:
        known, type_ = _Known(self.call, ranges), self.call.type.polars
        count = known.stop - known.first
        some = np.flatnonzero(count)
        made = pl.Series(self.call.name, [None], dtype=type_).new_from_index(0, len(count))
        if not len(some):
            return made
        numbers, values = known.ranks()
        wavelet, first, stop, count = Wavelet(numbers), known.first[some], known.stop[some], count[some]
        share = self._function.share
        assert share is not None
        if self._function.exact:
            place = np.maximum(count - np.floor(count - share * count).astype(np.int64) - 1, 0)
            return made.scatter(some, values.gather(wavelet.least(first, stop, place)).cast(type_))
        place = share * (count - 1)
        low = np.floor(place).astype(np.int64)
        lower, upper = (
            values.gather(wavelet.least(first, stop, at)).cast(pl.Float64).to_numpy()
            for at in (low, np.ceil(place).astype(np.int64))
        )
        rest = place - low
        between = np.where(rest > 0, lower + (upper - lower) * rest, lower)
        return made.scatter(some, pl.Series(between).cast(type_))


class CountDistinct(RangeCall):
    """A value counts in a range if the last equal one before it lies before the range."""

    def results(self, ranges: Ranges) -> pl.Series:
        known = _Known(self.call, ranges)
        numbers, _ = known.ranks()
        segment = ranges.of.start_of[known.places]
        order = np.lexsort((segment, numbers))
        before = np.full(len(order), -1, dtype=np.int64)
        same = (numbers[order][1:] == numbers[order][:-1]) & (segment[order][1:] == segment[order][:-1])
        before[order[1:][same]] = order[:-1][same]
        count = Wavelet(before + 1).below(known.first, known.stop, known.first + 1)
        return pl.Series(self.call.name, count)
