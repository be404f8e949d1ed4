"""The shard of a row: a hash of its key, equal in every process and for integers of every width.

>>> shard_of(pl.DataFrame({"k": [1, 2, 3, None]}), ("k",), 2).tolist()
[0, 0, 1, 0]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

_ODD = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)


def shard_of(page: pl.DataFrame, key: Sequence[str], shards: int) -> npt.NDArray[np.uint64]:
    """Return the shard number of each row. Integers are mixed by a multiplication, other values by Polars' hash with a
    fixed seed."""
    mixed = np.zeros(page.height, dtype=np.uint64)
    for name in key:
        column = page.get_column(name)
        if column.dtype.is_integer():
            values = column.cast(pl.Int64).fill_null(0).to_numpy().view(np.uint64)
        else:
            values = column.hash(seed=0).to_numpy()
        mixed = (mixed ^ values) * _ODD
        mixed ^= mixed >> _HIGH
    return mixed % np.uint64(shards)


def partition_of(label: int, partitions: int) -> int:
    """The Spark partition of a grouping key of type INT: Spark hashes it by Murmur3 with seed 42."""
    return _murmur3(label) % partitions


def spread(count: int, partitions: int, taken: set[int]) -> tuple[int, ...]:
    """Return new labels; the i-th falls into partition i modulo `partitions`, so that all partitions get equal work."""
    labels: list[int] = []
    for number in range(count):
        free = (label for label in itertools.count() if label not in taken and label not in labels)
        labels.append(next(label for label in free if partition_of(label, partitions) == number % partitions))
    return tuple(labels)


def _murmur3(value: int, seed: int = 42) -> int:
    """Murmur3 (x86, 32 bits) of one 32-bit integer, as a signed integer."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = seed ^ k
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h ^= h >> shift
        h = h * factor & mask
    return h - (1 << 32) if h >> 31 else h
