"""Approximations: partial results that stay small, whatever the number of values.

| function | a few values | more: a sketch | merge | result of a sketch |
|---|---|---|---|---|
| APPROX_DISTINCT(x) | different ones | HyperLogLog, 4096 registers | greatest registers | estimate, off by 1.6 % |
| APPROX_QUANTILE(x, p) | all | counters, each 2 % wide | add | middle of the counter at p * n, off by 1 % at most |

NULLs are skipped. Up to `SMALL` values are kept as they are, and the result is exact: groups of few values are merged
by Polars alone, all of a page at once. Results are the same in whatever order and parts the tuples come, so that
neither batches nor the number of shards change them. Sketches that drop values at random, such as KLL, do not have this
property; the counters are those of DDSketch (Masson, Rim, Lee).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from millstream.algebra.aggregate.collected import SHARE, at_share, items
from millstream.algebra.aggregate.function import AggregateFunction, Part
from millstream.algebra.aggregate.reduction import Operation
from millstream.algebra.types import Type

if TYPE_CHECKING:
    from datasketches import hll_sketch

SMALL = 256
"""The most values that are kept as they are."""
LOG_REGISTERS = 12
EMPTY_TEXT = "\0 empty"
"""Is counted in place of the empty text, which a sketch does not count."""
GROWTH = math.log(1.01 / 0.99)
"""Logarithm of the ratio of a counter's bounds: its middle is within 1 % of both."""
ONE = 40_000
"""The key of the counter that ends at 1: positive numbers have positive keys."""
_INFINITE, _NAN = np.int32(1 << 20), np.int32(1 << 21)


@dataclass(frozen=True, slots=True)
class Kept:
    """The two columns of a partial result: `chosen` values while they are few, else a sketch, `made` of values or
    `merged` of others."""

    chosen: Callable[[pl.Expr], pl.Expr]
    made: Callable[[pl.Series], bytes]
    merged: Callable[[Sequence[bytes]], bytes]

    def parts(self, values: Type) -> tuple[Part, ...]:
        """`values`: the type of the list."""
        few, sketch = Operation(self._few), Operation(self._sketch)
        all_few, all_sketches = Operation(self._all_few), Operation(self._all_sketches)
        return (
            Part(values, few, all_few, "__values", beside=("__sketch",)),
            Part(Type.BLOB, sketch, all_sketches, "__sketch", beside=("__values",)),
        )

    def _list(self, values: pl.Expr) -> pl.Expr:
        return self.chosen(values.drop_nulls()).implode()

    def _few(self, column: pl.Expr, type_: pl.DataType) -> pl.Expr:
        assert isinstance(type_, pl.List)
        values = self._list(column.cast(type_.inner))
        return pl.when(values.list.len() <= SMALL).then(values).otherwise(pl.lit([], dtype=type_))

    def _sketch(self, column: pl.Expr, type_: pl.DataType) -> pl.Expr:
        def sketched(lists: pl.Series) -> pl.Series:
            many = (lists.list.len() > SMALL).arg_true()
            return _at(many, [self.made(lists[at]) for at in many], len(lists), type_)

        # The lists of all groups come at once, since they are taken one by one.
        return self._list(column).map_batches(sketched, type_, is_elementwise=True)

    def _all_few(self, lists: pl.Expr, type_: pl.DataType, sketches: pl.Expr) -> pl.Expr:
        values = self._list(items(lists))
        few = sketches.is_null().all() & (values.list.len() <= SMALL)
        return pl.when(few).then(values).otherwise(pl.lit([], dtype=type_))

    def _all_sketches(self, sketches: pl.Expr, type_: pl.DataType, lists: pl.Expr) -> pl.Expr:
        def united(columns: Sequence[pl.Series]) -> pl.Series:
            values, held = columns
            many = ((held.list.len() > 0) | (values.list.len() > SMALL)).arg_true()
            made = [[*held[at], *([self.made(values[at])] if len(values[at]) else [])] for at in many]
            return _at(many, [self.merged(each) if len(each) > 1 else each[0] for each in made], len(held), type_)

        given = [self._list(items(lists)), sketches.drop_nulls().implode()]
        return pl.map_batches(given, united, type_, is_elementwise=True)


def _at(places: pl.Series, values: Sequence[Any], height: int, type_: pl.DataType) -> pl.Series:
    """A column with these values at these places; NULL elsewhere."""
    made = pl.Series([None], dtype=type_).new_from_index(0, height)
    if not len(values):
        return made
    chosen = pl.Series(values, dtype=type_)
    if len(values) == height:
        return chosen
    index = pl.Series([None], dtype=pl.Int64).new_from_index(0, height)
    return chosen.gather(index.scatter(places, pl.int_range(len(values), eager=True)))


def _of_sketches(sketches: pl.Expr, result: Callable[[bytes], Any], type_: Type) -> pl.Expr:
    """The results of sketches; NULL where there is none."""

    def mapped(column: pl.Series) -> pl.Series:
        known = column.is_not_null().arg_true()
        return _at(known, [result(column[at]) for at in known], len(column), type_.polars)

    return sketches.map_batches(mapped, type_.polars, is_elementwise=True)


# --- distinct values --------------------------------------------------------------------------------------------------


def hyperloglog(values: pl.Series) -> bytes:
    from datasketches import hll_sketch, tgt_hll_type

    sketch = hll_sketch(LOG_REGISTERS, tgt_hll_type.HLL_8)
    known = values.unique()
    if known.dtype == pl.String:
        known = known.replace("", EMPTY_TEXT)
    elif known.dtype.is_temporal() or known.dtype == pl.Boolean:
        known = known.cast(pl.Int64)
    for value in known.to_list():
        sketch.update(value)
    return bytes(sketch.serialize_compact())


def _union(sketches: Iterable[bytes]) -> hll_sketch:
    from datasketches import hll_sketch, hll_union, tgt_hll_type

    union = hll_union(LOG_REGISTERS)
    for sketch in sketches:
        union.update(hll_sketch.deserialize(sketch))
    return union.get_result(tgt_hll_type.HLL_8)


def united(sketches: Sequence[bytes]) -> bytes:
    return bytes(_union(sketches).serialize_compact())


def distinct(sketch: bytes) -> int:
    """The number of different values. The union of a sketch with itself has the estimate of its registers alone: that
    of a sketch which has seen all values one by one depends on their order."""
    estimate: float = _union((sketch, sketch)).get_estimate()
    return round(estimate)


class ApproxDistinct(AggregateFunction):
    """
    >>> sketch = hyperloglog(pl.Series(["a", "b", "", "a"]))
    >>> distinct(sketch), distinct(united([sketch, hyperloglog(pl.Series(["c", ""]))]))
    (3, 4)
    """

    name, spellings, type = "APPROX_DISTINCT", ("APPROX_COUNT_DISTINCT",), Type.BIGINT
    idempotent, over = True, False
    _kept = Kept(lambda values: values.unique(maintain_order=True), hyperloglog, united)

    def __init__(self, argument: Type = Type.BIGINT) -> None:
        self._argument = argument

    def of(self, argument: Type) -> AggregateFunction:
        return ApproxDistinct(argument)

    def parts(self, type_: Type) -> tuple[Part, ...]:  # noqa: ARG002
        return self._kept.parts(self._argument.array)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        values, sketch = parts
        return _of_sketches(sketch, distinct, Type.BIGINT).fill_null(values.list.len().cast(pl.Int64))


# --- quantiles --------------------------------------------------------------------------------------------------------

_COUNTER = np.dtype([("key", "<i4"), ("count", "<i8")])


def counters(values: pl.Series) -> bytes:
    keys, counts = np.unique(_keys(values.cast(pl.Float64).to_numpy()), return_counts=True)
    return _stored(keys, counts)


def _keys(values: Any) -> Any:
    sizes = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.ceil(np.log(sizes) / GROWTH) + ONE
    signed = np.copysign(np.where(np.isinf(sizes), _INFINITE, places), values)
    return np.where(np.isnan(values), _NAN, np.where(sizes == 0, 0, signed)).astype(np.int32)


def _stored(keys: Any, counts: Any) -> bytes:
    made = np.empty(len(keys), dtype=_COUNTER)
    made["key"], made["count"] = keys, counts
    return made.tobytes()


def added(sketches: Sequence[bytes]) -> bytes:
    every = np.concatenate([np.frombuffer(sketch, dtype=_COUNTER) for sketch in sketches])
    keys, places = np.unique(every["key"], return_inverse=True)
    counts = np.zeros(len(keys), dtype=np.int64)
    np.add.at(counts, places, every["count"])
    return _stored(keys, counts)


def quantile(sketch: bytes, share: float) -> float | None:
    held = np.frombuffer(sketch, dtype=_COUNTER)
    if not len(held):
        return None
    below = np.cumsum(held["count"])
    key = int(held["key"][np.searchsorted(below, max(share * float(below[-1]), 1.0))])
    if key == _NAN:
        return math.nan
    size = abs(key)
    if size in (0, _INFINITE):
        return math.copysign(math.inf, key) if size else 0.0
    upper = (size - ONE) * GROWTH
    try:
        middle = math.exp(upper) * 0.99
    except OverflowError:
        middle = math.exp(upper - GROWTH) * 1.01
    return math.copysign(middle, key)


class ApproxQuantile(AggregateFunction):
    """
    >>> sketch = added([counters(pl.Series([5.0, 100.0])), counters(pl.Series([-3.0]))])
    >>> [round(quantile(sketch, p)) for p in (0.0, 0.5, 1.0)]
    [-3, 5, 100]
    """

    name, spellings, type, numeric, over = "APPROX_QUANTILE", ("APPROX_PERCENTILE",), Type.DOUBLE, True, False
    within_group = True
    parameters = (SHARE,)
    _kept = Kept(lambda values: values, counters, added)

    def __init__(self, share: float | None = None) -> None:
        self._share = share

    def with_parameters(self, *values: Any) -> AggregateFunction:
        return ApproxQuantile(values[0])

    def parts(self, type_: Type) -> tuple[Part, ...]:  # noqa: ARG002
        return self._kept.parts(Type.DOUBLE_ARRAY)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        share, (values, sketch) = self._share, parts
        assert share is not None
        few = at_share(values, share)
        return (
            pl.when(sketch.is_null())
            .then(few)
            .otherwise(_of_sketches(sketch, lambda held: quantile(held, share), Type.DOUBLE))
        )


SKETCHES = (ApproxDistinct(), ApproxQuantile())
