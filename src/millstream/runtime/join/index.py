"""Which rows of two frames have equal keys: pairs of row numbers.

| | |
|---|---|
| NULL | never equals anything; without keys every row meets every other |
| NaN | equals itself, as it does in conditions |
| order | by the probing row, then by its partner |
| one integer key | looked up in an array if the keys lie close together, by binary search if they ascend |
| integers that repeat | sorted by digits, if they are few or lie close together (`radix_match`) |
| other keys | a hash join of the keys alone |

All of these beat a hash join because a page is small: the fixed costs of the hash join exceed its work. Keys of
different types are compared in a type that holds both.

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

_LEFT, _RIGHT = "__left_row", "__right_row"
BUCKETS = 32
"""Into how many buckets keys are hashed; a power of two."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SAFE = 1 << 61
"""Keys within this distance of zero can be subtracted from any other without passing for a near one."""


class Lookup:
    """Rows by integer keys that differ from each other and lie close together."""

    __slots__ = ("_base", "_table")

    def __init__(self, base: int, table: Places) -> None:
        self._base, self._table = base, table

    @classmethod
    def of(cls, keys: Places) -> Lookup | None:
        """None if keys lie far apart or repeat."""
        if not len(keys):
            return None
        lowest, highest = int(keys.min()), int(keys.max())
        span = highest - lowest + 1
        if span > 4 * len(keys) + 1024 or lowest <= -_SAFE or highest >= _SAFE:
            return None
        # The first and the last entry stand for all keys below and above.
        base = lowest - 1
        table = np.full(span + 2, -1, dtype=np.int64)
        rows, places = np.arange(len(keys)), keys - base
        table[places] = rows
        return cls(base, table) if (table.take(places) == rows).all() else None

    def find(self, keys: Places) -> Places:
        """For each key its row, or -1."""
        return self._table.take(keys - self._base, mode="clip")


class Equality(KeyIndex):
    """Equal keys of two frames: pairs of columns, and the types in which they are compared if theirs differ."""

    def __init__(self, pairs: Sequence[tuple[str, str]], types: Sequence[pl.DataType | None]) -> None:
        super().__init__([[pair[side] for pair in pairs] for side in (0, 1)], types)
        self.pairs = tuple(pairs)

    @classmethod
    def of(cls, left: Schema, right: Schema, output: Schema, keys: Sequence[tuple[str, str]]) -> Equality:
        """Of the inputs of a join, under the output's names: the left's, then the right's."""
        left_names = dict(zip(left.names, output.names[: len(left)], strict=True))
        right_names = dict(zip(right.names, output.names[len(left) :], strict=True))
        pairs = [(left_names[a], right_names[b]) for a, b in keys]
        return cls(pairs, common_types(output, pairs))

    def match(
        self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool, known: Lookup | None = None
    ) -> tuple[Places, Places]:
        """The row numbers of all pairs with equal keys; `known` is the partner's index, if there is one already."""
        probe, partner = (left, right) if probing_left else (right, left)
        if not self.pairs:
            found = (
                np.repeat(np.arange(probe.height), partner.height),
                np.tile(np.arange(partner.height), probe.height),
            )
            return found if probing_left else found[::-1]
        asked = self.integers(probe, 0 if probing_left else 1)
        if asked is not None:
            keys = self.integers(partner, 1 if probing_left else 0) if known is None else None
            quick = None
            if known is not None:
                quick = _hits(known.find(asked))
            elif keys is not None:
                quick = find_integers(keys, asked)
            if quick is not None:
                return quick if probing_left else quick[::-1]
        return self._hash(left, right, "left_right" if probing_left else "right_left")

    def distinct(self, frame: pl.DataFrame, side: int) -> int:
        """How many different keys one side has, at least 1."""
        return max(1, pl.DataFrame(self.keys(side, frame)).n_unique()) if self.pairs else 1

    def integers(self, frame: pl.DataFrame, side: int) -> Places | None:
        """The keys of one side, if they are single integers and none is NULL."""
        if len(self.pairs) != 1:
            return None
        column = frame.get_column(self.pairs[0][side])
        if not column.dtype.is_integer() or column.null_count():
            return None
        return column.to_numpy().astype(np.int64, copy=False)

    def buckets(self, frame: pl.DataFrame, side: int) -> npt.NDArray[np.uint8]:
        """The bucket of each row's key, below `BUCKETS`: the same for equal keys of both sides, in every process."""
        mixed = np.zeros(frame.height, dtype=np.uint64)
        for column in self.keys(side, frame):
            if column.dtype.is_integer():
                values = column.cast(pl.Int64).fill_null(0).to_numpy().view(np.uint64)
            else:  # adding zero makes one of the two float zeros
                values = (column + 0.0 if column.dtype.is_float() else column).hash(seed=0).to_numpy()
            mixed = (mixed ^ values) * _ODD
            mixed ^= mixed >> np.uint64(32)
        return (mixed >> np.uint64(64 - BUCKETS.bit_length() + 1)).astype(np.uint8)

    def _hash(
        self, left: pl.DataFrame, right: pl.DataFrame, order: Literal["left_right", "right_left"]
    ) -> tuple[Places, Places]:
        if left.height == right.height == 1:  # in a join of two single rows, Polars takes NaN for unequal to itself
            equal = [(a == b).item() is True for a, b in zip(self.keys(0, left), self.keys(1, right), strict=True)]
            found = np.zeros(int(all(equal)), dtype=np.int64)
            return found, found
        rows = [
            pl.DataFrame([*self.keys(side, frame), pl.Series(name, np.arange(frame.height))])
            for side, (frame, name) in enumerate(((left, _LEFT), (right, _RIGHT)))
        ]
        made = rows[0].join(rows[1], on=self.names, maintain_order=order)
        return made.get_column(_LEFT).to_numpy(), made.get_column(_RIGHT).to_numpy()

    def shared(self, left: pl.DataFrame, right: pl.DataFrame) -> Mask:
        """Which left rows have keys that some right row has too."""
        own, other = self.integers(left, 0), self.integers(right, 1)
        if own is not None and other is not None:
            return np.isin(own, other)
        rows = pl.DataFrame([*self.keys(0, left), pl.Series(_LEFT, np.arange(left.height))])
        found = rows.join(pl.DataFrame(self.keys(1, right)), on=self.names, how="semi").get_column(_LEFT)
        made = np.zeros(left.height, dtype=np.bool_)
        made[found.to_numpy()] = True
        return made

    def latest(self, left: pl.DataFrame, right: pl.DataFrame, upto: Places) -> Places:
        """For each right row the last left row with equal keys up to (and with) row `upto`, which ascends; or -1."""
        known = pl.DataFrame([*self.keys(0, left), pl.Series(_LEFT, np.arange(left.height))])
        asked = pl.DataFrame([*self.keys(1, right), pl.Series(_RIGHT, upto)])
        found = asked.join_asof(
            known, left_on=_RIGHT, right_on=_LEFT, by=self.names, coalesce=False, check_sortedness=False
        )
        return found.get_column(_LEFT).fill_null(-1).to_numpy()


def find_integers(partner: Places, probe: Places) -> tuple[Places, Places] | None:
    """Probing and partner rows of all pairs, by probing row and then by partner; None if a hash join is better."""
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
    """The places where something was found, and what."""
    hit = np.flatnonzero(found >= 0)
    return hit, found if len(hit) == len(found) else found.take(hit)
