"""Punctuated streams whose join values open and close.

| | |
|---|---|
| values | 0, 1, 2, …; a stream that has closed n of them draws evenly from the next `width` |
| tuples | `k` (the value), `v` (a number to check answers by); a Poisson process, every 2 ms on average |
| closings | a Poisson process; each closes the oldest open value, so all streams close values in the same order |

Streams made together may share their closings: each closes a value some time after a common moment, so they drift
apart for a while but not for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.arrays import Places
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS
from millstream.runtime.operator.contract import Input

Step = tuple[Input, ...]

GAP = 2_000
"""Microseconds between two tuples of a stream, on average."""
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Punctuated:
    """Rows in order of time; value `closed[i]` gets no tuple at or after `closed_at[i]`, which ascends."""

    rows: pl.DataFrame
    closed: Places
    closed_at: Places

    @property
    def end(self) -> int:
        return int(self.rows.item(-1, TS)) + 1 if self.rows.height else 0

    def with_closings(self, closed: Places, closed_at: Places) -> Punctuated:
        return Punctuated(self.rows, closed, closed_at)


def table(times: Places, keys: Places, draw: np.random.Generator) -> pl.DataFrame:
    return pl.DataFrame({"k": keys, "v": draw.integers(1, 1000, len(times)), TS: times})


def arrivals(draw: np.random.Generator, count: int, gap: float = GAP) -> Places:
    return np.cumsum(draw.exponential(gap, count)).astype(np.int64)


def moments(draw: np.random.Generator, upto: float, gap: float) -> Places:
    """A Poisson process up to some time."""
    count = int(upto / gap + 10 * np.sqrt(upto / gap) + 10)
    times = arrivals(draw, count, gap)
    return times[times < upto]


def values(draw: np.random.Generator, times: Places, closed_at: Places, width: int) -> Places:
    """A value for each of these times, drawn from those open then."""
    drawn: Places = np.searchsorted(closed_at, times, side="right") + draw.integers(0, width, len(times))
    return drawn


def stream(draw: np.random.Generator, times: Places, closed_at: Places, width: int) -> Punctuated:
    """Tuples at these times; the i-th closing closes value i."""
    rows = table(times, values(draw, times, closed_at, width), draw)
    return Punctuated(rows, np.arange(len(closed_at), dtype=np.int64), closed_at)


def in_step(
    count: int, every: float, *, width: int, streams: int = 2, gap: float = GAP, seed: int = 0
) -> list[Punctuated]:
    """Streams of `count` tuples each with a punctuation every `every` tuples. They close values together: each one
    about the time between two punctuations after a common moment."""
    draw = np.random.default_rng(seed)
    times = [arrivals(draw, count, gap) for _ in range(streams)]
    upto = max(int(own[-1]) for own in times)
    common = moments(draw, upto, every * gap)
    made = []
    for own in times:
        shut = np.sort(common + draw.exponential(every * gap, len(common))).astype(np.int64)
        made.append(stream(draw, own, shut, width))
    return made


def apart(count: int, every: Sequence[float], *, width: int, gap: float = GAP, seed: int = 0) -> list[Punctuated]:
    """Streams that close values at different rates: one falls behind the other."""
    draw = np.random.default_rng(seed)
    made = []
    for each in every:
        times = arrivals(draw, count, gap)
        made.append(stream(draw, times, moments(draw, float(times[-1]), each * gap), width))
    return made


def steps(
    streams: Sequence[Punctuated], length: int, *, punctuated: bool | Sequence[bool] = True, timed: bool = False
) -> list[Step]:
    """The tuples of each period of `length` microseconds, with punctuation if `punctuated`. `timed`: ports also receive
    the time."""
    heard = [punctuated] * len(streams) if isinstance(punctuated, bool) else list(punctuated)
    edges = np.arange(length, max(own.end for own in streams) + length, length)
    cuts = [np.searchsorted(own.rows.get_column(TS).to_numpy(), edges).tolist() for own in streams]
    shut = [np.searchsorted(own.closed_at, edges).tolist() for own in streams]
    made: list[Step] = []
    for place, edge in enumerate(edges.tolist()):
        ports = []
        for i, own in enumerate(streams):
            first, last = (cuts[i][place - 1] if place else 0), cuts[i][place]
            start, stop = (shut[i][place - 1] if place else 0), shut[i][place]
            rows = own.rows.slice(first, last - first) if last > first else None
            told = Punctuations.from_column("k", "=", pl.Series(own.closed[start:stop])) if stop > start else None
            ports.append(Input(rows, told if heard[i] else None, edge if timed else NEVER))
        made.append(tuple(ports))
    return made
