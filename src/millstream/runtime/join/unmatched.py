"""Tuples of one side of an outer join that have found no partner yet.

| | |
|---|---|
| state | the numbers and timestamps of stored tuples without a partner, ascending; those with one cost nothing |
| a step | tuples that arrive; tuples that find partners, new or stored; tuples that leave, or are never stored |
| returned | of the tuples that leave, those that never had a partner |

Tuples are numbered in order of arrival, from 1. The table is brought up to date by `table()`.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.schema import FOREVER, TS
from millstream.runtime.operator.frames import stack, where
from millstream.runtime.state.table import StateTable

_NONE: Integers = np.zeros(0, dtype=np.int64)


class Unmatched:
    def __init__(self, seq: str) -> None:
        self._seq = seq
        self._table = StateTable({seq: pl.Int64(), TS: pl.Int64()})
        self._filed = self._table.frame()
        """Content of the table when it was last up to date."""
        self._numbers = self._times = _NONE
        self._new: pl.DataFrame | None = None
        self._matched: list[Integers] = []
        self._left: list[pl.DataFrame] = []

    def arrive(self, rows: pl.DataFrame | None) -> None:
        """Begin a step with these new tuples, numbered consecutively."""
        self._new = rows

    def match(self, numbers: Integers) -> None:
        """Add tuples that are in a pair, in any order, some perhaps more than once."""
        self._matched.append(numbers)

    def leave(self, rows: pl.DataFrame) -> None:
        """Add tuples that no later one can join."""
        self._left.append(rows)

    def take(self) -> pl.DataFrame | None:
        """End the step; return the tuples that left without ever having had a partner."""
        self._load()
        new, left, matched = self._new, self._left, self._matched
        self._new, self._left, self._matched = None, [], []
        gone = stack(left) if left else None
        numbers = _NONE if gone is None else gone.get_column(self._seq).to_numpy()
        found = np.concatenate(matched) if matched else _NONE
        padded = self._drop(found, numbers)
        if new is not None:
            first = int(new.item(0, self._seq))
            alone = np.ones(new.height, dtype=np.bool_)
            alone[found[found >= first] - first] = False
            fresh = numbers >= first
            padded[fresh] = alone[numbers[fresh] - first]
            alone[numbers[fresh] - first] = False
            places = np.flatnonzero(alone)
            self._numbers = np.concatenate([self._numbers, places + first])
            self._times = np.concatenate([self._times, new.get_column(TS).to_numpy().take(places)])
        if gone is None or not padded.any():
            return None
        return gone if padded.all() else where(gone, padded)

    def _drop(self, matched: Integers, left: Integers) -> Mask:
        """Remove stored tuples that matched or left; return the mask of those that left and were still waiting."""
        if not len(self._numbers) or not (len(matched) or len(left)):
            return np.zeros(len(left), dtype=np.bool_)
        kept = ~np.isin(self._numbers, matched)
        waited = np.isin(left, self._numbers[kept])
        kept &= ~np.isin(self._numbers, left)
        self._numbers, self._times = self._numbers[kept], self._times[kept]
        return waited

    def __len__(self) -> int:
        """Number of tuples that wait for a partner."""
        self._load()
        return len(self._numbers)

    def oldest(self) -> int:
        """Timestamp of the oldest tuple that waits for a partner; FOREVER if none does."""
        return int(self._times.min()) if len(self) else FOREVER

    # --- the table --------------------------------------------------------------------------------------------------

    def table(self) -> StateTable:
        """Return the table, brought up to date."""
        self._load()
        held = self._filed.get_column(self._seq).to_numpy()
        kept = np.isin(held, self._numbers)
        if not kept.all():
            self._table.keep(pl.Series(kept))
        filed = np.searchsorted(self._numbers, held[-1], side="right") if len(held) else 0
        if filed < len(self._numbers):
            self._table.append(pl.DataFrame({self._seq: self._numbers[filed:], TS: self._times[filed:]}))
        self._filed = self._table.frame()
        return self._table

    def _load(self) -> None:
        """Read the table if it has been restored from outside."""
        if self._table.frame() is not self._filed:
            self._filed = self._table.frame()
            self._numbers = self._filed.get_column(self._seq).to_numpy()
            self._times = self._filed.get_column(TS).to_numpy()
