"""Running merges within segments of an array, without a loop over the tuples.

| values | method |
|---|---|
| integers that are added | one running sum, less what precedes each segment: exact modulo 2^64 |
| any other, long segments | `accumulate` of each segment |
| any other, short segments | doubling: after step n each value has merged the 2^n before it in its segment |

Nothing is subtracted from a sum of fractions, so no digits cancel.

>>> running(np.add, np.array([1, 2, 3, 4, 5]), np.array([0, 2])).tolist()
[1, 3, 3, 7, 12]
>>> running(np.maximum, np.array([1.5, 0.5, 3.0, 4.0]), np.array([0, 2])).tolist()
[1.5, 1.5, 3.0, 4.0]
>>> backwards(np.add, np.array([1.0, 2.0, 3.0]), np.array([0, 1])).tolist()
[1.0, 5.0, 3.0]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from millstream.algebra.arrays import Places

Values = npt.NDArray[Any]
Merge = Callable[[tuple[Values, ...], tuple[Values, ...]], tuple[Values, ...]]
LONG = 64
"""Segments of at least this length are accumulated one by one."""


def running(merge: np.ufunc, values: Values, starts: Places) -> Values:
    """Return for each value the merge of all values of its segment up to it. `starts` ascend from 0."""
    size = len(values)
    if not size or len(starts) == 1:
        return np.asarray(merge.accumulate(values)) if size else values
    if merge is np.add and values.dtype.kind == "i":
        sums = np.cumsum(values)
        before = sums[starts - 1]
        before[0] = 0
        return np.asarray(sums - np.repeat(before, lengths_of(starts, size)))
    lengths = lengths_of(starts, size)
    is_long = lengths >= LONG
    longest = int(lengths[~is_long].max(initial=0))
    merged = doubled(lambda left, right: (merge(left[0], right[0]),), (values,), starts, longest)[0]
    for start, length in zip(starts[is_long].tolist(), lengths[is_long].tolist(), strict=True):
        merge.accumulate(values[start : start + length], out=merged[start : start + length])
    return merged


def backwards(merge: np.ufunc, values: Values, starts: Places) -> Values:
    """Return for each value the merge of all values of its segment from it on."""
    return running(merge, values[::-1], turned(starts, len(values)))[::-1]


def turned(starts: Places, size: int) -> Places:
    """Return the starts of the segments of a reversed array."""
    return size - np.append(starts, size)[:0:-1]


def doubled(merge: Merge, values: tuple[Values, ...], starts: Places, longest: int | None = None) -> tuple[Values, ...]:
    """Return the running merges of partial results that consist of several arrays, by doubling. `longest`: the length
    of the longest segment that matters."""
    size = len(values[0])
    lengths = lengths_of(starts, size)
    merged = tuple(value.copy() for value in values)
    longest = int(lengths.max(initial=0)) if longest is None else longest
    if longest < 2:
        return merged
    within, step = np.arange(size) - np.repeat(starts, lengths), 1
    while step < longest:
        inside = within[step:] >= step
        later = merge(tuple(m[:-step] for m in merged), tuple(m[step:] for m in merged))
        for own, made in zip(merged, later, strict=True):
            own[step:] = np.where(inside, made, own[step:])
        step *= 2
    return merged


def lengths_of(starts: Places, size: int) -> Places:
    """Return the lengths of the segments of an array."""
    lengths = np.empty(len(starts), dtype=np.int64)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    if len(starts):
        lengths[-1] = size - starts[-1]
    return lengths


def first_since(times: Places, segment: Places, asked: Places, since: Places) -> Places:
    """Return for each asked segment the first place that is not older than `since`. Times ascend within segments, and
    `segment` is the segment of each place."""
    lowest = int(times.min())
    span = int(times.max()) - lowest + 2
    if span * (int(segment[-1]) + 1) >= 1 << 62:
        known = np.unique(times)
        times, since = np.searchsorted(known, times), np.searchsorted(known, since)
        lowest, span = 0, len(known) + 1
    sought = asked * span + np.clip(since - lowest, 0, span - 1)
    return np.searchsorted(segment * span + (times - lowest), sought)
