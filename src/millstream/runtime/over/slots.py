"""Slots of time: of the results of a partition, the last one of each slot, once time has reached the end of the slot.

Slots are aligned at the epoch: `[n * length, (n + 1) * length)`. A result keeps the timestamp of its tuple.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.operator.frames import stack, where
from millstream.runtime.over.partitions import Arranged, numbered
from millstream.runtime.state.table import StateTable


class Slots:
    """The results that are held back, at most one a partition, in the order of time."""

    def __init__(self, schema: Schema, partition: Sequence[str], length: int) -> None:
        self.table = StateTable(schema.polars)
        self._partition, self._length = list(partition), length

    @property
    def oldest(self) -> int:
        """The lowest timestamp of the results held back."""
        return int(self.table.frame().item(0, TS)) if len(self.table) else FOREVER

    @property
    def needs(self) -> int:
        """The first time at which a result held back is emitted."""
        return (self.oldest // self._length + 1) * self._length if len(self.table) else FOREVER

    def withheld(self) -> pl.DataFrame:
        """Return the results held back."""
        return self.table.frame()

    def take(self, results: pl.DataFrame | None, now: int) -> pl.DataFrame | None:
        """Add results; return those of slots that have ended by now."""
        if results is None and now < self.needs:
            return None
        held = self.table.frame()
        both = held if results is None else stack([held, results]) if held.height else results
        if not both.height:
            return None
        slots = both.get_column(TS).to_numpy() // self._length
        last = _last(numbered(both, self._partition), slots)
        ended = last & ((slots + 1) * self._length <= now)
        self.table.replace(where(both, last & ~ended))
        return where(both, ended) if ended.any() else None


def _last(codes: np.ndarray, slots: np.ndarray) -> Mask:
    """Return a mask of the last result of each partition and slot."""
    order = Arranged.by(codes).order
    codes, slots = codes[order], slots[order]
    ends = np.ones(len(order), dtype=np.bool_)
    ends[:-1] = (codes[1:] != codes[:-1]) | (slots[1:] != slots[:-1])
    last = np.zeros(len(order), dtype=np.bool_)
    last[order[ends]] = True
    return last
