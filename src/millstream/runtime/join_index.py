"""Which rows of two frames have equal keys: pairs of row numbers.

| | |
|---|---|
| NULL | never equals anything; without keys every row meets every other |
| order | by the probing row, then by its partner |
| one integer key | looked up in an array if the keys lie close together, by binary search if they ascend |
| other keys | a hash join of the keys alone |

An array beats a hash join because a page is small: the fixed costs of the hash join exceed its work. Keys of different
types are compared in a type that holds both.

>>> find_integers(np.array([7, 5, 6]), np.array([6, 9, 7]))
(array([0, 2]), array([2, 0]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type

Places = npt.NDArray[np.int64]
_LEFT, _RIGHT = "__left_row", "__right_row"
_SAFE = 1 << 61
"""Keys within this distance of zero can be subtracted from any other without passing for a near one."""


class Equality:
    """The equality part of a join, over frames that carry the output's names."""

    def __init__(self, left: Schema, right: Schema, output: Schema, keys: Sequence[tuple[str, str]]) -> None:
        left_names = dict(zip(left.names, output.names[: len(left)], strict=True))
        right_names = dict(zip(right.names, output.names[len(left) :], strict=True))
        self.pairs = tuple((left_names[a], right_names[b]) for a, b in keys)
        self._types = tuple(_common(output.type_of(a), output.type_of(b)) for a, b in self.pairs)
        self._names = [f"__key{i}" for i in range(len(self.pairs))]

    def match(self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool) -> tuple[Places, Places]:
        """The row numbers of all pairs with equal keys."""
        probe, partner = (left, right) if probing_left else (right, left)
        if not self.pairs:
            found = (
                np.repeat(np.arange(probe.height), partner.height),
                np.tile(np.arange(partner.height), probe.height),
            )
            return found if probing_left else found[::-1]
        if len(self.pairs) == 1:
            sides = [_integers(frame.get_column(self.pairs[0][i])) for i, frame in enumerate((left, right))]
            if sides[0] is not None and sides[1] is not None:
                quick = find_integers(sides[1], sides[0]) if probing_left else find_integers(sides[0], sides[1])
                if quick is not None:
                    return quick if probing_left else quick[::-1]
        return self._hash(left, right, "left_right" if probing_left else "right_left")

    def _hash(
        self, left: pl.DataFrame, right: pl.DataFrame, order: Literal["left_right", "right_left"]
    ) -> tuple[Places, Places]:
        rows = [
            pl.DataFrame([*self._keys(frame, side), pl.Series(name, np.arange(frame.height))])
            for side, (frame, name) in enumerate(((left, _LEFT), (right, _RIGHT)))
        ]
        made = rows[0].join(rows[1], on=self._names, maintain_order=order)
        return made.get_column(_LEFT).to_numpy(), made.get_column(_RIGHT).to_numpy()

    def codes(self, left: pl.DataFrame, right: pl.DataFrame) -> Places:
        """A number for each key value of the left rows and then of the right ones; equal keys have equal numbers."""
        both = pl.concat([pl.DataFrame(self._keys(left, 0)), pl.DataFrame(self._keys(right, 1))])
        numbered = both.with_columns(pl.Series(_LEFT, np.arange(both.height)))
        return numbered.select(pl.col(_LEFT).first().over(self._names)).to_series().to_numpy()

    def latest(self, left: pl.DataFrame, right: pl.DataFrame, upto: Places) -> Places:
        """For each right row the last left row with equal keys up to (and with) row `upto`, which ascends; or -1."""
        known = pl.DataFrame([*self._keys(left, 0), pl.Series(_LEFT, np.arange(left.height))])
        asked = pl.DataFrame([*self._keys(right, 1), pl.Series(_RIGHT, upto)])
        found = asked.join_asof(
            known, left_on=_RIGHT, right_on=_LEFT, by=self._names, coalesce=False, check_sortedness=False
        )
        return found.get_column(_LEFT).fill_null(-1).to_numpy()

    def _keys(self, frame: pl.DataFrame, side: int) -> list[pl.Series]:
        """The keys of one side in the types in which they are compared."""
        made: list[pl.Series] = []
        for name, pair, common in zip(self._names, self.pairs, self._types, strict=True):
            column = frame.get_column(pair[side])
            made.append((column if common is None else column.cast(common)).alias(name))
        return made


def _common(left: Type, right: Type) -> pl.DataType | None:
    """The type in which keys of different types are compared."""
    if left.polars == right.polars:
        return None
    if left.is_integer and right.is_integer:
        return pl.Int64()
    if left.is_numeric and right.is_numeric:
        return pl.Float64()
    return pl.Datetime("us") if {left, right} == {Type.DATE, Type.TIMESTAMP} else left.polars


def _integers(column: pl.Series) -> Places | None:
    """The values of an integer column without nulls."""
    if not column.dtype.is_integer() or column.null_count():
        return None
    return column.to_numpy().astype(np.int64, copy=False)


def find_integers(partner: Places, probe: Places) -> tuple[Places, Places] | None:
    """Probing and partner rows of all pairs, by probing row and then by partner; None if a hash join is better."""
    if not len(partner) or not len(probe):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if len(partner) <= 4 * len(probe) and (found := _look_up(partner, probe)) is not None:
        hit = np.flatnonzero(found >= 0)
        return hit, found if len(hit) == len(found) else found.take(hit)
    if len(probe) < len(partner) and (found := _look_up(probe, partner)) is not None:
        hit = np.flatnonzero(found >= 0)
        found = found.take(hit)
        order = np.argsort(found, kind="stable")
        return found.take(order), hit.take(order)
    if not (partner[1:] >= partner[:-1]).all():
        return None
    first = np.searchsorted(partner, probe)
    count = np.searchsorted(partner, probe, side="right") - first
    probing = np.repeat(np.arange(len(probe)), count)
    within = np.arange(len(probing)) - np.repeat(np.cumsum(count) - count, count)
    return probing, np.repeat(first, count) + within


def _look_up(known: Places, asked: Places) -> Places | None:
    """For each key asked for its row among the known ones, or -1; None if these lie far apart or repeat."""
    lowest, highest = int(known.min()), int(known.max())
    span = highest - lowest + 1
    if span > 4 * len(known) + 1024 or lowest <= -_SAFE or highest >= _SAFE:
        return None
    # The first and the last entry stand for all keys below and above.
    base = lowest - 1
    table = np.full(span + 2, -1, dtype=np.int64)
    rows, places = np.arange(len(known)), known - base
    table[places] = rows
    if not (table.take(places) == rows).all():
        return None
    return table.take(asked - base, mode="clip")
