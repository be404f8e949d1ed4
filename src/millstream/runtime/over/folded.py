"""Calls whose results are computed of folds: which folds they need, and the results of merged folds.

Calls share folds: COUNT(x), SUM(x) and AVG(x) have the number of values in common. The final results are those of the
aggregate functions themselves (`algebra/aggregate`), computed from the columns of their partial results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.decay import DECAYED, FACTOR
from millstream.algebra.aggregate.function import ARGUMENT, TIME, Part
from millstream.algebra.aggregate.moments import DEVIATIONS, MEAN
from millstream.algebra.aggregate.reduction import COUNT, GREATEST, HALF, HIGH, LEAST, SUM, TOTAL
from millstream.algebra.aggregate.sequenced import FIRST, LAST
from millstream.algebra.arrays import Mask
from millstream.errors import ResultOutOfRange
from millstream.runtime.aggregate.overflow import ResultCheck
from millstream.runtime.over.folds import Arrays, Boundary, Extremes, Fold, Linear, Moments, Sums, as_column

REASON = "__reason."
"""Prefix of a column, beside results, of the reasons why they do not fit; NULL for those that fit."""
_SUMS = {id(COUNT): "count", id(SUM): "total", id(TOTAL): "total", id(HIGH): "high"}


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a partial result: an array of a fold; NULL where `known`, another fold, has counted no value."""

    name: str
    type: pl.DataType
    fold: Fold
    array: int = 0
    known: Fold | None = None

    def of(self, merged: dict[Fold, Arrays]) -> pl.Series:
        arrays, absent = merged[self.fold], None
        if self.known is not None:
            absent = merged[self.known][0] == 0
        elif isinstance(self.fold, Boundary):
            absent = ~(arrays[0] & arrays[1])
        return as_column(arrays[self.array], self.type, absent).alias(self.name)


@dataclass(frozen=True, slots=True)
class _Halves:
    """The high halves of integers, and the integers, both summed."""

    high: Fold
    total: Fold

    def fits(self, merged: dict[Fold, Arrays]) -> bool:
        """Return whether no sum has wrapped (`sum_fits` of `algebra/aggregate/reduction.py`)."""
        carried = (merged[self.total][0] >> 32) - merged[self.high][0]
        return not len(carried) or bool(carried.min() >= 0 and carried.max() < HALF)


def _is_high(fold: Fold) -> TypeGuard[Sums]:
    return isinstance(fold, Sums) and fold.of == "high"


def foldable(call: AggregateCall) -> bool:
    """Return whether the results of a call can be computed of folds."""
    return all(column is not None for column in _columns(call)) and bool(call.partials)


def _columns(call: AggregateCall) -> Iterator[_Column | None]:
    """Yield the columns of a call's partial result; None for one that no fold computes."""
    for attribute, part in zip(call.partials, call.parts, strict=True):
        yield _column(call, attribute.name, attribute.type.polars, part)


def _column(call: AggregateCall, name: str, type_: pl.DataType, part: Part) -> _Column | None:
    read = call.argument, call.filter
    operation = part.accumulate
    if part.inputs == (TIME,) and operation in (LEAST, GREATEST):
        # The time of FIRST and LAST: the order of tuples takes its place.
        return _Column(name, type_, Sums(None, call.filter, pl.Int64(), "count"))
    if operation in (FIRST, LAST):
        return _Column(name, type_, Boundary(*read, type_, operation is LAST), 2)
    if part.inputs != (ARGUMENT,):
        return None
    if operation in (MEAN, DEVIATIONS):
        return _Column(name, type_, Moments(*read, pl.Float64()), 1 if operation is MEAN else 2)
    if operation in (FACTOR, DECAYED):
        decayed = Linear(*read, type_, *call.parameters)
        return _Column(name, type_, decayed, int(operation is DECAYED), Sums(*read, pl.Int64(), "count"))
    if operation in (LEAST, GREATEST):
        counted = Sums(*read, pl.Int64(), "count")
        return _Column(name, type_, Extremes(*read, type_, operation is LEAST), known=counted)
    if (of := _SUMS.get(id(operation))) is None:
        return None
    known = Sums(*read, pl.Int64(), "count") if operation is SUM else None
    return _Column(name, type_, Sums(*read, pl.Int64() if of == "count" else type_, of), known=known)


class Folded:
    """Calls that are computed of folds."""

    def __init__(self, calls: Sequence[AggregateCall], partition: Sequence[str]) -> None:
        self._calls = tuple(calls)
        self._columns = [column for call in calls for column in _columns(call) if column is not None]
        self._check = ResultCheck(calls, partition)
        self._pairs = [_Halves(c.fold, replace(c.fold, of="total")) for c in self._columns if _is_high(c.fold)]
        self._plain = {call.name: call.partials[0].name for call in calls if call.plain}
        """The column that is the result of a call, by its name."""
        self._computed = [call for call in calls if not call.plain]
        self.folds: list[Fold] = list(
            dict.fromkeys(fold for c in self._columns for fold in (c.fold, c.known) if fold is not None)
        )

    def results(self, merged: dict[Fold, Arrays], partition: Sequence[pl.Series]) -> list[pl.Series]:
        """Return the results of the calls, given the merged folds and the partition of each result, and the reasons of
        those that do not fit (`reasons`)."""
        if not self._calls:
            return []
        columns = [column.of(merged) for column in self._columns]
        made = {column.name: column for column in columns}
        unfit = None
        if not all(pair.fits(merged) for pair in self._pairs):
            unfit = self._check(pl.DataFrame([*columns, *partition]))
        if self._computed:
            computed = pl.DataFrame(columns).select([call.result() for call in self._computed])
            made |= {column.name: column for column in computed.get_columns()}
        results = [made[self._plain.get(call.name, call.name)].alias(call.name) for call in self._calls]
        return [*results, *as_reasons(unfit)]


def as_reasons(unfit: pl.DataFrame | None) -> list[pl.Series]:
    """Return the reasons of a check as columns beside the results."""
    return [] if unfit is None else [series.alias(REASON + series.name) for series in unfit.get_columns()]


def split_reasons(results: Sequence[pl.Series]) -> tuple[list[pl.Series], pl.DataFrame | None]:
    """Return the results, and the reasons why some do not fit, by result; None if all fit."""
    found = [series for series in results if series.name.startswith(REASON) and series.null_count() < len(series)]
    plain = [series for series in results if not series.name.startswith(REASON)]
    return plain, pl.DataFrame([s.alias(s.name.removeprefix(REASON)) for s in found]) if found else None


def refuse(unfit: pl.DataFrame | None) -> None:
    """Raise ResultOutOfRange for the first result that does not fit: it will be emitted."""
    if unfit is not None:
        reasons = unfit.get_columns()[0].drop_nulls()
        raise ResultOutOfRange(reasons[0])


def chosen(results: list[pl.Series], emitted: Mask | None) -> list[pl.Series]:
    """Return the results of the tuples that are emitted."""
    return results if emitted is None else [series.filter(pl.Series(emitted)) for series in results]
