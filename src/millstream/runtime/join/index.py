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
| many pairs, few of them near in time | only the near ones, and some others: at most a few for each row (`stretches`) |

On a page all of these beat a hash join, whose fixed costs exceed its work there. Keys of different types are compared
in a type that holds both.

>>> find_integers(np.array([7, 5, 6]), np.array([6, 9, 7]))
(array([0, 2]), array([2, 0]))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.schema import Schema
from millstream.runtime.join.multi.keys import KeyIndex, common_types
from millstream.runtime.join.radix_match import radix_match
from millstream.runtime.join.stretches import Near, Pairs, Stretches, by_number

_ROW = ("__left_row", "__right_row")
FEW_PAIRS = 1 << 16
"""Up to this many pairs of rows a hash join costs less than counting the pairs first."""
LONGER = 8
"""If one side is this many times longer than the other, the number of pairs is estimated from the shorter one first."""
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
    ) -> Pairs:
        """Return the row numbers of all pairs with equal keys. `known`: a look-up of the partner's keys, if there is
        one already."""
        found = self._find(left, right, probing_left=probing_left, known=known)
        pairs = found.pairs() if isinstance(found, Stretches) else found
        return pairs if probing_left else pairs[::-1]

    def candidates(
        self, left: pl.DataFrame, right: pl.DataFrame, near: Near | None, *, probing_left: bool
    ) -> Iterator[Pairs]:
        """Return all pairs with equal keys that are near in time, in portions, and perhaps others with equal keys: at
        most `near.most`, or `FEW_PAIRS`. No key is NULL."""
        found = self._find(left, right, probing_left=probing_left, near=near)
        if isinstance(found, Stretches) and near is not None and int(found.count.sum()) > near.most:
            found = near.cut(found)
        for pairs in found.portions() if isinstance(found, Stretches) else (found,):
            yield pairs if probing_left else pairs[::-1]

    def _find(
        self,
        left: pl.DataFrame,
        right: pl.DataFrame,
        *,
        probing_left: bool,
        known: Lookup | None = None,
        near: Near | None = None,
    ) -> Pairs | Stretches:
        """Return the probing and partner rows of all pairs with equal keys, or their stretches. With `near` these are
        pairs only if they are few."""
        probe, partner = (left, right) if probing_left else (right, left)
        found: Pairs | Stretches | None = None
        if not self.pairs:
            every = np.full(probe.height, partner.height)
            return Stretches(np.zeros(probe.height, dtype=np.int64), every, None)
        if (keys := self.integers(probe, 0 if probing_left else 1)) is not None:
            if known is not None:
                found = _hits(known.find(keys))
            elif (partners := self.integers(partner, 1 if probing_left else 0)) is not None:
                found = find_integers(partners, keys)
        if found is not None:
            return found
        if (
            near is not None
            and left.height * right.height > FEW_PAIRS
            and self._at_most(left, right, near.most) > near.most
        ):
            codes, count = self.codes([(0, left), (1, right)])
            asked, sought = codes if probing_left else codes[::-1]
            return by_number(sought, asked, count)
        pairs = self._hash(left, right, "left_right" if probing_left else "right_left")
        return pairs if probing_left else pairs[::-1]

    def _at_most(self, left: pl.DataFrame, right: pl.DataFrame, enough: int) -> int:
        """Upper limit of the number of pairs with equal keys, from the high bits of their hashes; a rough one if it is
        at most `enough`."""
        shorter, longer = ((0, left), (1, right)) if left.height <= right.height else ((1, right), (0, left))
        rows, many = shorter[1].height, longer[1].height
        if many > LONGER * rows and (most := int(self._histogram(*shorter, LONGER * rows).max()) * many) <= enough:
            return most
        # With as many values as the shorter side has rows, pairs of unequal keys are about as many as the longer has.
        counts = self._histogram(*shorter, rows), self._histogram(*longer, rows)
        return int(counts[0] @ counts[1])

    def _histogram(self, side: int, frame: pl.DataFrame, values: int) -> Places:
        """Number of rows for each value of the high bits of the keys' hashes, of which there are at least `values`."""
        bits = values.bit_length()
        places = self._hashes(frame, side) >> np.uint64(64 - bits)
        return np.bincount(places.view(np.int64), minlength=1 << bits)

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
        return (self._hashes(frame, side) >> np.uint64(64 - BUCKETS.bit_length() + 1)).astype(np.uint8)

    def _hashes(self, frame: pl.DataFrame, side: int) -> npt.NDArray[np.uint64]:
        """Return the hash of each key: its high bits are well mixed. There is at least one key column."""
        hashes = [_hashed(column) for column in self.keys(side, frame)]
        mixed = hashes[0] * _ODD
        for values in hashes[1:]:
            mixed ^= mixed >> np.uint64(32)
            mixed ^= values
            mixed *= _ODD
        return mixed

    def _hash(self, left: pl.DataFrame, right: pl.DataFrame, order: Literal["left_right", "right_left"]) -> Pairs:
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


def _hashed(column: pl.Series) -> npt.NDArray[np.uint64]:
    """Return a number for each value: an integer itself, else its hash."""
    if column.dtype.is_integer():
        known = column.fill_null(0) if column.null_count() else column
        return known.to_numpy().astype(np.int64, copy=False).view(np.uint64)
    return column.hash(seed=0).to_numpy()


def find_integers(partner: Places, probe: Places) -> Pairs | Stretches | None:
    """Return probing and partner rows of all pairs, by probing row, then by partner, if each row of one side has at
    most one partner; else their stretches; None: a hash join is better."""
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
    return Stretches(first, np.searchsorted(partner, probe, side="right") - first, None)


def _hits(found: Places) -> Pairs:
    """Return the probing rows that have a partner, and the partners."""
    hit = np.flatnonzero(found >= 0)
    return hit, found if len(hit) == len(found) else found.take(hit)
