"""Stored tuples that a merging join can purge although tuples of the other side wait.

A merging join takes its tuples in the order of time, so those of a side that is ahead wait. The time that this side has
reached purges stored tuples of the other side at once, unless one of the tuples that wait may join them. Only those of
the same key may, so that what is purged does not depend on the tuples that other shards have.

    a: stored (k=1, ts=3), windows of 4        b: waiting (k=2, ts=6), reached 8
    No later b is below 8, and no b of key 1 waits: a is of no use. A b (k=1, ts=7) that waits would keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.schema import FOREVER, TS
from millstream.algebra.time_limits import Limit
from millstream.runtime.join.index import Equality
from millstream.runtime.operator.frames import take, where
from millstream.runtime.operator.time_closing import FAR, values_of

MANY_PAIRS = 1 << 22
"""If there may be more pairs than this, only the first waiting tuple of each key is looked at."""
_COMPARED = {"<": pl.Series.__lt__, "<=": pl.Series.__le__}


class LookAhead:
    """Decides about the tuples of the side `place` (0 is the left one) with a window of `range_`, given what the other
    side's time excludes (`limits`)."""

    def __init__(self, place: int, equality: Equality, range_: int | None, limits: Sequence[Limit]) -> None:
        self._place, self._equality, self._range, self._limits = place, equality, range_, tuple(limits)

    def useless(self, rows: pl.DataFrame, reached: int, waiting: Callable[[], pl.DataFrame]) -> Mask:
        """Return a mask of the stored tuples that neither a waiting tuple of the other side can join, nor one of the
        time that it has reached, or later."""
        gone = self._useless(rows, np.full(rows.height, reached, dtype=np.int64))
        if gone.any():
            gone[gone] = ~self._wanted(where(rows, gone), waiting())
        return gone

    def _wanted(self, rows: pl.DataFrame, waiting: pl.DataFrame) -> Mask:
        """Return a mask of the stored tuples that a waiting tuple may join."""
        keys = list(dict.fromkeys(pair[1 - self._place] for pair in self._equality.pairs))
        for key in keys:
            if waiting.get_column(key).null_count():
                waiting = where(waiting, waiting.get_column(key).is_not_null())
        if not waiting.height:
            return np.zeros(rows.height, dtype=np.bool_)
        if rows.height * waiting.height > MANY_PAIRS:
            waiting = waiting.select(*keys, TS)
            waiting = waiting.group_by(keys).min() if keys else waiting.min()
        pair = (rows, waiting) if self._place == 0 else (waiting, rows)
        places = self._equality.match(*pair, probing_left=self._place == 0)
        mine, others = places if self._place == 0 else places[::-1]
        bounds = np.full(rows.height, FOREVER, dtype=np.int64)
        np.minimum.at(bounds, mine, waiting.get_column(TS).to_numpy()[others])
        wanted: Mask = ~self._useless(rows, bounds)
        return wanted

    def _useless(self, rows: pl.DataFrame, bounds: Integers) -> Mask:
        """Return a mask of the tuples that no tuple of their own bound on, or later, can join."""
        gone: Mask = bounds == FOREVER
        if self._range is not None:
            gone |= rows.get_column(TS).to_numpy() < bounds - self._range
        return gone | closed_by(self._limits, rows, bounds) if self._limits else gone


def closed_by(limits: Sequence[Limit], rows: pl.DataFrame, bounds: Integers, places: Integers | None = None) -> Mask:
    """Return a mask of the tuples (those at some places, or all) that the other side's time closes, given its bound for
    each of them."""
    gone = np.zeros(len(bounds), dtype=np.bool_)
    near = np.flatnonzero(np.abs(bounds) < FAR)
    if limits and len(near):
        some = take(rows, near if places is None else places[near])
        stamps = pl.DataFrame({TS: bounds[near]})
        for limit in limits:
            values = values_of(limit.value, stamps)
            if values is not None:
                values = values.cast(pl.Int64) if limit.column == TS else values
                closed = _COMPARED[limit.op](some.get_column(limit.column), values)
                gone[near] |= closed.fill_null(False).to_numpy()
    return gone
