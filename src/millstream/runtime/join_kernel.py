"""Pairs of a symmetric join, a whole step at a time.

A step brings new tuples of either side, or of both; the state holds the older ones. Each pair of the step is found
once: new left tuples meet the stored right ones, and all left ones, stored and new, meet the new right ones (or the
mirror image of this, whichever moves fewer tuples). What a window asks of a pair:

| windows | the pair (a, b) joins if |
|---|---|
| RANGE or unbounded on both sides | `b.ts - a.ts <= W_A` and `a.ts - b.ts <= W_B`, where the side is bounded |
| ROWS on some side | the one processed first is in its own window when the other comes: among the last n of its stream, at most W older, or anything if unbounded |

For ROWS every tuple knows its number in its own stream (`seq`) and how many of the other stream came before it
(`before`): a comes before b exactly if `a.seq <= b.before`. Numbers are counted whether a tuple is stored or not, so
purging never shifts a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.expression import Expression
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type
from millstream.runtime.evaluate import predicate

Mask = npt.NDArray[np.bool_]
SEQ = ("__left_seq", "__right_seq")
BEFORE = ("__left_before", "__right_before")
OTHER = "__other"


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """The window on one input: `range` in timestamp units, or the last `rows` tuples, or neither: unbounded."""

    range: int | None = None
    rows: int | None = None

    @property
    def unbounded(self) -> bool:
        return self.range is None and self.rows is None


def named(rows: pl.DataFrame, columns: list[str], names: list[str]) -> pl.DataFrame:
    """The columns, in this order, under other names; no data is moved."""
    made = rows.clone() if rows.columns == columns else rows.select(columns)
    made.columns = names
    return made


class Equality:
    """The equality part of a join, over frames that already carry the output's names (and no others in common but the
    timestamp). NULL keys never join; without keys all pairs do."""

    def __init__(self, left: Schema, right: Schema, output: Schema, keys: Sequence[tuple[str, str]]) -> None:
        left_names = dict(zip(left.names, output.names[: len(left)], strict=True))
        right_names = dict(zip(right.names, output.names[len(left) :], strict=True))
        self.pairs = tuple((left_names[a], right_names[b]) for a, b in keys)
        self._types = tuple(_common(output.type_of(a), output.type_of(b)) for a, b in self.pairs)
        self._left_on: list[str | pl.Expr] = []
        self._right_on: list[str | pl.Expr] = []
        extra: list[pl.Expr] = []
        used: set[str] = set()
        for pair, common in zip(self.pairs, self._types, strict=True):
            if used.isdisjoint(pair):
                self._left_on.append(pair[0] if common is None else pl.col(pair[0]).cast(common))
                self._right_on.append(pair[1] if common is None else pl.col(pair[1]).cast(common))
                used |= set(pair)
            else:
                extra.append(pl.col(pair[0]) == pl.col(pair[1]))
        self._extra = pl.all_horizontal(extra) if extra else None

    def join(self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool) -> pl.DataFrame:
        """All pairs, ordered by the probing tuple and then by its partner: the left columns, then the right ones. A
        right column whose name is in both has the suffix `__other`."""
        order: Literal["left_right", "right_left"] = "left_right" if probing_left else "right_left"
        if not self._left_on:
            return left.join(right, how="cross", suffix=OTHER, maintain_order=order)
        made = left.join(
            right,
            left_on=self._left_on,
            right_on=self._right_on,
            suffix=OTHER,
            coalesce=False,
            maintain_order=order,
        )
        return made if self._extra is None else made.filter(self._extra)

    def codes(self, left: pl.DataFrame, right: pl.DataFrame) -> npt.NDArray[np.int64]:
        """A number for each key value of the left rows and then of the right ones; equal keys have equal numbers."""
        keys = [f"__key{i}" for i in range(len(self.pairs))]
        left_keys = [self._cast(0, i).alias(key) for i, key in enumerate(keys)]
        right_keys = [self._cast(1, i).alias(key) for i, key in enumerate(keys)]
        both = pl.concat([left.select(left_keys), right.select(right_keys)])
        numbered = both.with_columns(pl.Series("__row", np.arange(both.height)))
        return numbered.select(pl.col("__row").first().over(keys)).to_series().to_numpy()

    def latest(self, left: pl.DataFrame, right: pl.DataFrame, place: str, upto: str) -> pl.Series:
        """For each right row the highest `place` of a left row with equal keys that is at most its `upto`, or null.
        Both columns ascend."""
        keys = [f"__key{i}" for i in range(len(self.pairs))]
        known = left.select(*(self._cast(0, i).alias(key) for i, key in enumerate(keys)), place)
        asked = right.select(*(self._cast(1, i).alias(key) for i, key in enumerate(keys)), upto)
        found = asked.join_asof(known, left_on=upto, right_on=place, by=keys, coalesce=False, check_sortedness=False)
        return found.get_column(place)

    def _cast(self, side: int, index: int) -> pl.Expr:
        """A key of one side in the type in which it is compared."""
        common = self._types[index]
        column = pl.col(self.pairs[index][side])
        return column if common is None else column.cast(common)


def _common(left: Type, right: Type) -> pl.DataType | None:
    """The type in which keys of different types are compared."""
    if left.polars == right.polars:
        return None
    if left.is_integer and right.is_integer:
        return pl.Int64()
    if left.is_numeric and right.is_numeric:
        return pl.Float64()
    return pl.Datetime("us") if {left, right} == {Type.DATE, Type.TIMESTAMP} else left.polars


class Half:
    """One side of a step: what is stored, what is new."""

    __slots__ = ("joined", "new", "old")

    def __init__(self, old: pl.DataFrame, new: pl.DataFrame | None) -> None:
        self.old, self.new = old, new
        self.joined: pl.DataFrame | None = None
        """`both`, if somebody has needed it."""

    @property
    def both(self) -> pl.DataFrame:
        """Stored and new tuples, in one chunk: hashing is slow across chunks."""
        if self.new is None or not self.old.height:
            return self.old if self.new is None else self.new
        if self.joined is None:
            self.joined = pl.concat([self.old, self.new], rechunk=True)
        return self.joined


class JoinKernel:
    """Finds the pairs of one step."""

    def __init__(self, equality: Equality, residual: Expression | None, windows: tuple[JoinWindow, JoinWindow]) -> None:
        self._equality, self._windows = equality, windows
        self._residual = None if residual is None else predicate(residual)
        self.by_rows = any(window.rows is not None for window in windows)

    def pairs(self, left: Half, right: Half) -> pl.DataFrame | None:
        """The results of a step; for a step of one side by probing tuple and then by partner."""
        found: list[pl.DataFrame | None] = []
        if left.new is not None and right.new is not None:
            if not right.old.height or (left.old.height and left.new.height < right.new.height):
                found.append(self._meet(left.new, right.old, probing_left=True))
                found.append(self._meet(left.both, right.new, probing_left=False))
            else:
                found.append(self._meet(left.new, right.both, probing_left=True))
                found.append(self._meet(left.old, right.new, probing_left=False))
        elif left.new is not None:
            found.append(self._meet(left.new, right.old, probing_left=True))
        elif right.new is not None:
            found.append(self._meet(left.old, right.new, probing_left=False))
        parts = [part for part in found if part is not None]
        return (pl.concat(parts) if len(parts) > 1 else parts[0]) if parts else None

    def _meet(self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool) -> pl.DataFrame | None:
        if not left.height or not right.height or self._too_far(left, right):
            return None
        made = self._equality.join(left, right, probing_left=probing_left)
        if not made.height:
            return None
        # In place: these frames are ours alone, and building another one costs more than all of the arithmetic.
        left_time, right_time = made.drop_in_place(TS).to_numpy(), made.drop_in_place(TS + OTHER).to_numpy()
        live = self._live(made, left_time, right_time)
        made.insert_column(made.width, pl.Series(TS, np.maximum(left_time, right_time)))
        if live is not None and not live.all():
            made = made.filter(pl.Series(live))
        if self._residual is not None:
            made = made.filter(self._residual)
        return made if made.height else None

    def _too_far(self, left: pl.DataFrame, right: pl.DataFrame) -> bool:
        """Whether no two tuples are near enough in time to join."""
        if self.by_rows or all(window.unbounded for window in self._windows):
            return False
        left_time, right_time = left.get_column(TS).to_numpy(), right.get_column(TS).to_numpy()
        kept_left, kept_right = (window.range for window in self._windows)
        if kept_left is not None and int(right_time.min()) - int(left_time.max()) > kept_left:
            return True
        return kept_right is not None and int(left_time.min()) - int(right_time.max()) > kept_right

    def _live(
        self, made: pl.DataFrame, left_time: npt.NDArray[np.int64], right_time: npt.NDArray[np.int64]
    ) -> Mask | None:
        """Which pairs the windows let join; None if there are no windows."""
        left, right = self._windows
        if self.by_rows:
            left_seq, left_before, right_seq, right_before = (
                made.drop_in_place(name).to_numpy() for name in (SEQ[0], BEFORE[0], SEQ[1], BEFORE[1])
            )
            left_live = _stored_is_live(left, left_seq, right_before, left_time, right_time)
            right_live = _stored_is_live(right, right_seq, left_before, right_time, left_time)
            return np.where(left_seq <= right_before, left_live, right_live)
        if left.range is None and right.range is None:
            return None
        age = right_time - left_time
        live: Mask = np.ones(len(age), dtype=np.bool_) if left.range is None else age <= left.range
        return live if right.range is None else live & (age >= -right.range)


def _stored_is_live(
    window: JoinWindow,
    seq: npt.NDArray[np.int64],
    before: npt.NDArray[np.int64],
    stored: npt.NDArray[np.int64],
    probing: npt.NDArray[np.int64],
) -> Mask:
    """Which stored tuples are in their window when the probing ones come."""
    if window.rows is not None:
        return seq > before - window.rows
    if window.range is None:
        return np.ones(len(seq), dtype=np.bool_)
    age = probing - stored
    return (age >= 0) & (age <= window.range)
