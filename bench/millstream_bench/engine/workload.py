"""Arrivals: Poisson streams, bursts at the same mean rate, and the tuples that come with them.

Times are microseconds of virtual time; everything follows from the random generator passed in.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import MICROS, Type

SCHEMA = Schema.of(("v", Type.DOUBLE))
"""One attribute, uniform in [0, 1), for selections of any selectivity."""


def poisson(rng: np.random.Generator, rate: float, seconds: float) -> np.ndarray:
    """Arrival times of a Poisson process: exponential gaps with mean 1/rate."""
    expected = rate * seconds
    gaps = rng.exponential(1 / rate, int(expected + 10 * np.sqrt(expected) + 20))
    times = np.cumsum(gaps)
    micros: np.ndarray = (times[times < seconds] * MICROS).astype(np.int64)
    return micros


def poisson_bursts(rng: np.random.Generator, rate: float, seconds: float, size: int) -> np.ndarray:
    """Bursts of simultaneous tuples at the same mean rate of tuples."""
    return np.repeat(poisson(rng, rate / size, seconds), size)


def spaced_bursts(count: int, size: int, gap: int) -> np.ndarray:
    """Bursts at equal distance."""
    return np.repeat(np.arange(1, count + 1, dtype=np.int64) * gap, size)


def regular(rate: float, seconds: float) -> np.ndarray:
    """Equally spaced times, for heartbeats."""
    return (np.arange(1, int(rate * seconds) + 1) * (MICROS / rate)).astype(np.int64)


def tuples(rng: np.random.Generator, times: np.ndarray) -> pl.DataFrame:
    """A tuple for each arrival, stamped with it."""
    return pl.DataFrame({"v": rng.random(len(times)), TS: times}, schema=SCHEMA.polars)
