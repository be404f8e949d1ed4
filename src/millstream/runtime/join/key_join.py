"""Window join in which each tuple of a stream with KEY JOIN is in one result at most.

| | |
|---|---|
| computes | the pairs of the window join, one by one; a pair uses its tuples of the sides in `once` |
| a used tuple | joins no later tuple and leaves the window at once |
| order of pairs | by the later tuple of the pair, then by the earlier one, as they are processed |
| order, timestamp | in timestamp order, the left one first among equals; the later tuple's timestamp |
| state, punctuation, progress, cost | as the window join's; with both sides in `once` also a loop over a step's pairs |

A tuple without a partner is not used. A `ROWS` window counts used tuples too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Places
from millstream.runtime.join.kernel import BEFORE, SEQ, Half
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.frames import take, where
from millstream.runtime.operator.registry import carries_out


@carries_out("key_join")
class KeyJoin(WindowJoin):
    """`once`: for each side, whether its tuples are used once."""

    numbers = True
    tells_keys = False

    def __init__(self, *inputs: Any, once: tuple[bool, bool], **options: Any) -> None:
        super().__init__(*inputs, **options)
        self._once = once
        self._kernel.on_match = self._note
        self._found: list[Integers] = []
        """For each part of the step's pairs: the numbers of the left and right tuples, and their places in the order of
        both streams."""

    def _note(self, left: pl.DataFrame, right: pl.DataFrame, rows: tuple[Places, Places]) -> None:
        numbers = [frame.get_column(SEQ[i]).to_numpy().take(rows[i]) for i, frame in enumerate((left, right))]
        before = [frame.get_column(BEFORE[i]).to_numpy().take(rows[i]) for i, frame in enumerate((left, right))]
        self._found.append(np.stack([*numbers, numbers[0] + before[0], numbers[1] + before[1]]))

    def _chosen(self, pairs: pl.DataFrame | None, halves: list[Half]) -> pl.DataFrame | None:
        found, self._found = self._found, []
        if pairs is None or not found:
            return pairs
        *numbers, left, right = np.concatenate(found, axis=1)
        order = np.lexsort((np.minimum(left, right), np.maximum(left, right)))
        chosen = order[self._first_uses(numbers[0][order], numbers[1][order])]
        for index in (0, 1):
            if self._once[index]:
                halves[index] = self._without(index, halves[index], numbers[index][chosen])
        return take(pairs, chosen)

    def _first_uses(self, left: Integers, right: Integers) -> Places:
        """Return the places of the pairs to emit, given the numbers of the tuples of all pairs in order."""
        if not all(self._once):
            _, first = np.unique(left if self._once[0] else right, return_index=True)
            return np.sort(first)
        used: tuple[set[int], set[int]] = set(), set()
        chosen: list[int] = []
        for place, (one, other) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            if one not in used[0] and other not in used[1]:
                chosen.append(place)
                used[0].add(one)
                used[1].add(other)
        return np.array(chosen, dtype=np.int64)

    def _without(self, index: int, half: Half, used: Integers) -> Half:
        """Return the tuples of a side without used ones; those in the state leave it."""
        side, new = self._sides[index], half.new
        stored = np.isin(side.rows.get_column(SEQ[index]).to_numpy(), used)
        if stored.any():
            gone = where(side.rows, stored)
            side.table.keep(pl.Series(~stored))
            side.left(gone)
        if new is not None:
            new = where(new, ~np.isin(new.get_column(SEQ[index]).to_numpy(), used))
        return Half(side.rows, new if new is not None and new.height else None)
