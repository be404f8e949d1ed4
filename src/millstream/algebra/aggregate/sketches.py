"""Approximations from sketches: partial results that stay small, whatever the number of values.

| function | partial | from tuples | merge | result |
|---|---|---|---|---|
| APPROX_DISTINCT(x) | HyperLogLog, 4096 registers | hashes of x | greatest registers | estimate, off by 1.6 % |
| APPROX_QUANTILE(x, p) | counters, each 2 % wide | count x | add | middle of the counter at p * n, off by 1 % at most |

NULLs are skipped. A sketch of tuples is the same in whatever order and in whatever parts they come, so that neither
batches nor the number of shards change a result. Sketches that drop values at random, such as KLL, do not have this
property; the counters are those of DDSketch (Masson, Rim, Lee).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from millstream.algebra.aggregate.function import AggregateFunction, Parameter, Part
from millstream.algebra.aggregate.reduction import Operation
from millstream.algebra.types import Type

if TYPE_CHECKING:
    from datasketches import hll_sketch

LOG_REGISTERS = 12
EMPTY_TEXT = "\0 empty"
"""Is counted in place of the empty text, which a sketch does not count."""
GROWTH = math.log(1.01 / 0.99)
"""Logarithm of the ratio of a counter's bounds: its middle is within 1 % of both."""
ONE = 40_000
"""The key of the counter that ends at 1: positive numbers have positive keys."""
_INFINITE, _NAN = np.int32(1 << 20), np.int32(1 << 21)


def _reducing(made: Callable[[pl.Series], bytes]) -> Callable[..., pl.Expr]:
    """The expression that makes one sketch of all values of a group."""

    def reduced(values: pl.Series) -> pl.Series:
        return pl.Series([made(values)], dtype=pl.Binary)

    return lambda column, type_: column.drop_nulls().map_batches(reduced, type_, returns_scalar=True)


def _mapping(made: Callable[[bytes], Any], type_: Type) -> Callable[[pl.Expr], pl.Expr]:
    """The expression of the result of each sketch."""

    def mapped(sketches: pl.Series) -> pl.Series:
        return pl.Series([None if sketch is None else made(sketch) for sketch in sketches], dtype=type_.polars)

    return lambda column: column.map_batches(mapped, type_.polars, is_elementwise=True)


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


def united(sketches: pl.Series) -> bytes:
    first, *others = sketches
    return bytes(_union((first, *others)).serialize_compact() if others else first)


def distinct(sketch: bytes) -> int:
    """The number of different values. The union of a sketch with itself has the estimate of its registers alone: that
    of a sketch which has seen all values one by one depends on their order."""
    estimate: float = _union((sketch, sketch)).get_estimate()
    return round(estimate)


class ApproxDistinct(AggregateFunction):
    """
    >>> sketch = hyperloglog(pl.Series(["a", "b", "", "a"]))
    >>> distinct(sketch), distinct(united(pl.Series([sketch, hyperloglog(pl.Series(["c", ""]))])))
    (3, 4)
    """

    name, spellings, type = "APPROX_DISTINCT", ("APPROX_COUNT_DISTINCT",), Type.BIGINT
    idempotent, over = True, False
    _made, _merged = Operation(_reducing(hyperloglog)), Operation(_reducing(united))
    _result = staticmethod(_mapping(distinct, Type.BIGINT))

    def parts(self, type_: Type) -> tuple[Part, ...]:  # noqa: ARG002
        return (Part(Type.BLOB, self._made, self._merged, "__sketch"),)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        return self._result(parts[0])


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


def added(sketches: pl.Series) -> bytes:
    first, *others = sketches
    if not others:
        return bytes(first)
    every = np.concatenate([np.frombuffer(sketch, dtype=_COUNTER) for sketch in (first, *others)])
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
    >>> sketch = added(pl.Series([counters(pl.Series([5.0, 100.0])), counters(pl.Series([-3.0]))]))
    >>> [round(quantile(sketch, p)) for p in (0.0, 0.5, 1.0)]
    [-3, 5, 100]
    """

    name, spellings, type, numeric, over = "APPROX_QUANTILE", ("APPROX_PERCENTILE",), Type.DOUBLE, True, False
    within_group = True
    parameters = (Parameter("the share p", Type.DOUBLE, valid=lambda p: 0 <= p <= 1, range="between 0 and 1"),)
    _made, _merged = Operation(_reducing(counters)), Operation(_reducing(added))

    def __init__(self, share: float | None = None) -> None:
        self._share = share

    def with_parameters(self, *values: Any) -> AggregateFunction:
        return ApproxQuantile(values[0])

    def parts(self, type_: Type) -> tuple[Part, ...]:  # noqa: ARG002
        return (Part(Type.BLOB, self._made, self._merged, "__sketch"),)

    def result(self, *parts: pl.Expr) -> pl.Expr:
        share = self._share
        assert share is not None
        return _mapping(lambda sketch: quantile(sketch, share), Type.DOUBLE)(parts[0])


SKETCHES = (ApproxDistinct(), ApproxQuantile())
