"""Pairs of rows of two frames with equal keys, as row numbers.

| | |
|---|---|
| NULL | equals nothing |
| no keys | every row is paired with every other |
| NaN | equals itself, as it does in conditions |
| order | by the probing row, then by its partner |
| one integer key | an array look-up if the keys are distinct and close together, binary search if they ascend |
| integers that repeat | sorted by digits, if they are few or close together (`radix_match`) |
| other keys | a hash join of the keys alone |

On a page all of these beat a hash join, whose fixed costs exceed its work there. Keys of different types are compared
in a type that holds both.

>>> find_integers(np.array([7, 5, 6]), np.array([6, 9, 7]))
(array([0, 2]), array([2, 0]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.schema import Schema
from millstream.runtime.join.multi.keys import KeyIndex, common_types
from millstream.runtime.join.radix_match import expanded, radix_match

_ROW = ("__left_row", "__right_row")
BUCKETS = 32
"""Number of buckets into which keys are hashed; a power of two."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SAFE = 1 << 61
"""Keys within this distance of zero: the difference to any other key, even if it overflows, is not a small one."""


class Lookup:
    """Rows by integer keys that are distinct and close together."""

    __slots__ = ("_base", "_table")

    def __init__(self, base: int, table: Places) -> None:
        self._base, self._table = base, table

    @classmethod
    def of(cls, keys: Places) -> Lookup | None:
        """Return the look-up array of the keys; None if they are far apart or repeat."""
        if not len(keys):
            return None
        lowest, highest = int(keys.min()), int(keys.max())
        span = highest - lowest + 1
        if span > 4 * len(keys) + 1024 or lowest <= -_SAFE or highest >= _SAFE:
            return None
        # The first and the last entry represent all keys below and above.
        base = lowest - 1
        table = np.full(span + 2, -1, dtype=np.int64)
        rows, places = np.arange(len(keys)), keys - base
        table[places] = rows
        return cls(base, table) if (table.take(places) == rows).all() else None

    def find(self, keys: Places) -> Places:
        """Return the row of each key, or -1."""
        return self._table.take(keys - self._base, mode="clip")


class Equality(KeyIndex):
    """Equality of the keys of two frames: pairs of columns, and the type to compare each pair in if theirs differ."""

    def __init__(self, pairs: Sequence[tuple[str, str]], types: Sequence[pl.DataType | None]) -> None:
        super().__init__([[pair[side] for pair in pairs] for side in (0, 1)], types)
        self.pairs = tuple(pairs)

    @classmethod
    def of(cls, left: Schema, right: Schema, output: Schema, keys: Sequence[tuple[str, str]]) -> Equality:
        """Return the equality of the inputs of a join, over the output's names: the left's, then the right's."""
        left_names = dict(zip(left.names, output.names[: len(left)], strict=True))
        right_names = dict(zip(right.names, output.names[len(left) :], strict=True))
        pairs = [(left_names[a], right_names[b]) for a, b in keys]
        return cls(pairs, common_types(output, pairs))

    def match(
        self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool, known: Lookup | None = None
    ) -> tuple[Places, Places]:
        """Return the row numbers of all pairs with equal keys. `known`: a look-up of the partner's keys, if there is
        one already."""
        probe, partner = (left, right) if probing_left else (right, left)
        found: tuple[Places, Places] | None = None
        if not self.pairs:
            probing = np.repeat(np.arange(probe.height), partner.height)
            found = probing, np.tile(np.arange(partner.height), probe.height)
        elif (keys := self.integers(probe, 0 if probing_left else 1)) is not None:
            if known is not None:
                found = _hits(known.find(keys))
            elif (partners := self.integers(partner, 1 if probing_left else 0)) is not None:
                found = find_integers(partners, keys)
        if found is None:
            return self._hash(left, right, "left_right" if probing_left else "right_left")
        return found if probing_left else found[::-1]

    def distinct(self, frame: pl.DataFrame, side: int) -> int:
        """Number of distinct keys of one side, at least 1."""
        return max(1, pl.DataFrame(self.keys(side, frame)).n_unique()) if self.pairs else 1

    def integers(self, frame: pl.DataFrame, side: int) -> Places | None:
        """Return the keys of one side if they are single integers and none is NULL."""
        if len(self.pairs) != 1:
            return None
        column = frame.get_column(self.pairs[0][side])
        if not column.dtype.is_integer() or column.null_count():
            return None
        return column.to_numpy().astype(np.int64, copy=False)

    def buckets(self, frame: pl.DataFrame, side: int) -> npt.NDArray[np.uint8]:
        """Return the bucket of each key, below `BUCKETS`: the same for equal keys of both sides, in every process."""
        mixed = np.zeros(frame.height, dtype=np.uint64)
        for column in self.keys(side, frame):
            if column.dtype.is_integer():
                values = column.cast(pl.Int64).fill_null(0).to_numpy().view(np.uint64)
            else:  # adding zero turns -0.0 into 0.0
                values = (column + 0.0 if column.dtype.is_float() else column).hash(seed=0).to_numpy()
            mixed = (mixed ^ values) * _ODD
            mixed ^= mixed >> np.uint64(32)
        return (mixed >> np.uint64(64 - BUCKETS.bit_length() + 1)).astype(np.uint8)

    def _hash(
        self, left: pl.DataFrame, right: pl.DataFrame, order: Literal["left_right", "right_left"]
    ) -> tuple[Places, Places]:
        if left.height == right.height == 1:  # in a join of two single rows, Polars treats NaN as unequal to itself
            equal = [(a == b).item() is True for a, b in zip(self.keys(0, left), self.keys(1, right), strict=True)]
            found = np.zeros(int(all(equal)), dtype=np.int64)
            return found, found
        pairs = self._numbered(left, 0).join(self._numbered(right, 1), on=self.names, maintain_order=order)
        return pairs.get_column(_ROW[0]).to_numpy(), pairs.get_column(_ROW[1]).to_numpy()

    def _numbered(self, frame: pl.DataFrame, side: int) -> pl.DataFrame:
        """Return the keys of one side with their row numbers."""
        return pl.DataFrame([*self.keys(side, frame), pl.Series(_ROW[side], np.arange(frame.height))])

    def shared(self, left: pl.DataFrame, right: pl.DataFrame) -> Mask:
        """Return the mask of the left rows whose key some right row has too."""
        own, other = self.integers(left, 0), self.integers(right, 1)
        if own is not None and other is not None:
            return np.isin(own, other)
        found = self._numbered(left, 0).join(pl.DataFrame(self.keys(1, right)), on=self.names, how="semi")
        shared = np.zeros(left.height, dtype=np.bool_)
        shared[found.get_column(_ROW[0]).to_numpy()] = True
        return shared

    def latest(self, left: pl.DataFrame, right: pl.DataFrame, upto: Places) -> Places:
        """Return for each right row the last left row with equal keys up to row `upto` (included, ascending), or -1."""
        known = self._numbered(left, 0)
        probe = pl.DataFrame([*self.keys(1, right), pl.Series(_ROW[1], upto)])
        found = probe.join_asof(
            known, left_on=_ROW[1], right_on=_ROW[0], by=self.names, coalesce=False, check_sortedness=False
        )
        return found.get_column(_ROW[0]).fill_null(-1).to_numpy()


def find_integers(partner: Places, probe: Places) -> tuple[Places, Places] | None:
    """Return probing and partner rows of all pairs, by probing row, then by partner; None: a hash join is better."""
    if not len(partner) or not len(probe):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if len(partner) <= 4 * len(probe) and (index := Lookup.of(partner)) is not None:
        return _hits(index.find(probe))
    if len(probe) < len(partner) and (index := Lookup.of(probe)) is not None:
        rows, probing = _hits(index.find(partner))
        order = np.argsort(probing, kind="stable")
        return probing.take(order), rows.take(order)
    if not (partner[1:] >= partner[:-1]).all():
        return radix_match(partner, probe)
    first = np.searchsorted(partner, probe)
    return expanded(first, np.searchsorted(partner, probe, side="right") - first)


def _hits(found: Places) -> tuple[Places, Places]:
    """Return the probing rows that have a partner, and the partners."""
    hit = np.flatnonzero(found >= 0)
    return hit, found if len(hit) == len(found) else found.take(hit)
