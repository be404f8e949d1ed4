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
_OTHER = "__other"


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
        types = {name: output.type_of(name) for pair in self.pairs for name in pair}
        self._left_on: list[str | pl.Expr] = []
        self._right_on: list[str | pl.Expr] = []
        extra: list[pl.Expr] = []
        used: set[str] = set()
        for pair in self.pairs:
            if used.isdisjoint(pair):
                common = _common(types[pair[0]], types[pair[1]])
                self._left_on.append(pair[0] if common is None else pl.col(pair[0]).cast(common))
                self._right_on.append(pair[1] if common is None else pl.col(pair[1]).cast(common))
                used |= set(pair)
            else:
                extra.append(pl.col(pair[0]) == pl.col(pair[1]))
        self._extra = pl.all_horizontal(extra) if extra else None

    def join(self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool) -> pl.DataFrame:
        """All pairs, ordered by the probing tuple and then by its partner. The partner's columns that are in both have
        the suffix `__other`."""
        probe, partner = (left, right) if probing_left else (right, left)
        if not self._left_on:
            return probe.join(partner, how="cross", suffix=_OTHER, maintain_order="left_right")
        probe_on, partner_on = (self._left_on, self._right_on) if probing_left else (self._right_on, self._left_on)
        made = probe.join(
            partner,
            left_on=probe_on,
            right_on=partner_on,
            suffix=_OTHER,
            coalesce=False,
            maintain_order="left_right",
        )
        return made if self._extra is None else made.filter(self._extra)


def _common(left: Type, right: Type) -> pl.DataType | None:
    """The type in which keys of different types are compared."""
    if left.polars == right.polars:
        return None
    if left.is_integer and right.is_integer:
        return pl.Int64()
    if left.is_numeric and right.is_numeric:
        return pl.Float64()
    return pl.Datetime("us") if {left, right} == {Type.DATE, Type.TIMESTAMP} else left.polars


class JoinKernel:
    """Finds the pairs of one step."""

    def __init__(
        self, equality: Equality, output: Schema, residual: Expression | None, windows: tuple[JoinWindow, JoinWindow]
    ) -> None:
        self._equality, self._windows = equality, windows
        self._columns = list(output.names)
        self._residual = None if residual is None else predicate(residual)
        self.by_rows = any(window.rows is not None for window in windows)

    def pairs(
        self, old: tuple[pl.DataFrame, pl.DataFrame], new: tuple[pl.DataFrame | None, pl.DataFrame | None]
    ) -> pl.DataFrame | None:
        """The results of a step, by probing tuple and then by partner."""
        (old_left, old_right), (left, right) = old, new
        found: list[pl.DataFrame | None] = []
        if left is not None and right is not None:
            if not old_right.height or (old_left.height and left.height < right.height):
                found.append(self._meet(left, old_right, probing_left=True))
                found.append(self._meet(_both(old_left, left), right, probing_left=False))
            else:
                found.append(self._meet(left, _both(old_right, right), probing_left=True))
                found.append(self._meet(old_left, right, probing_left=False))
        elif left is not None:
            found.append(self._meet(left, old_right, probing_left=True))
        elif right is not None:
            found.append(self._meet(old_left, right, probing_left=False))
        parts = [part for part in found if part is not None]
        return (pl.concat(parts) if len(parts) > 1 else parts[0]) if parts else None

    def _meet(self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool) -> pl.DataFrame | None:
        if not left.height or not right.height:
            return None
        made = self._equality.join(left, right, probing_left=probing_left)
        if not made.height:
            return None
        own, other = made.get_column(TS).to_numpy(), made.get_column(TS + _OTHER).to_numpy()
        left_time, right_time = (own, other) if probing_left else (other, own)
        live = self._live(made, left_time, right_time)
        time = np.maximum(left_time, right_time)
        result = pl.DataFrame([*(made.get_column(name) for name in self._columns), pl.Series(TS, time)])
        if live is not None and not live.all():
            result = result.filter(pl.Series(live))
        if self._residual is not None:
            result = result.filter(self._residual)
        return result if result.height else None

    def _live(
        self, made: pl.DataFrame, left_time: npt.NDArray[np.int64], right_time: npt.NDArray[np.int64]
    ) -> Mask | None:
        """Which pairs the windows let join; None if there are no windows."""
        left, right = self._windows
        if self.by_rows:
            left_seq, left_before = made.get_column(SEQ[0]).to_numpy(), made.get_column(BEFORE[0]).to_numpy()
            right_seq, right_before = made.get_column(SEQ[1]).to_numpy(), made.get_column(BEFORE[1]).to_numpy()
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


def _both(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([old, new]) if old.height else new
