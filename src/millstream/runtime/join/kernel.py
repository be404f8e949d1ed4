"""Pairs of a symmetric join, a whole step at a time.

A step brings new tuples of either side, or of both; the state holds the older ones. Each pair of the step is found
once: new left tuples meet the stored right ones, and all left ones, stored and new, meet the new right ones (or the
mirror image of this, whichever moves fewer tuples). What a window asks of a pair:

| windows | the pair (a, b) joins if |
|---|---|
| RANGE or unbounded on both sides | `b.ts - a.ts <= W_A` and `a.ts - b.ts <= W_B`, where the side is bounded |
| ROWS on some side | the one that came first is still in its own window when the other comes |

In its window is a tuple that is among the last n of its stream (ROWS), at most W older (RANGE), or any (unbounded). For
ROWS every tuple knows its number in its own stream (`seq`) and how many of the other stream came before it (`before`):
a comes before b exactly if `a.seq <= b.before`. Tuples are counted whether they are stored or not, so purging never
shifts a window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask, Places
from millstream.algebra.expression import Expression
from millstream.algebra.schema import TS, Schema
from millstream.algebra.window import Window
from millstream.runtime.expression.evaluate import predicate
from millstream.runtime.join.index import Equality
from millstream.runtime.operator.contract import Input
from millstream.runtime.operator.frames import pick, stack, take, where

FEW = 64
"""Looking at the times of so few tuples costs less than joining them in vain."""
SEQ = ("__left_seq", "__right_seq")
BEFORE = ("__left_before", "__right_before")
HIDDEN = (TS, *SEQ, *BEFORE)


def named(rows: pl.DataFrame, columns: list[str], names: list[str]) -> pl.DataFrame:
    """The columns, in this order, under other names; no data is moved."""
    made = rows.clone() if rows.columns == columns else pick(rows, columns)
    made.columns = names
    return made


class JoinColumns:
    """The columns of a join's inputs under the output's names, where those of one input follow those of the one before.

    `names[i]` gives for each column of input i that of the output; `stored[i]` has those of the output, and the time.
    """

    def __init__(self, inputs: Sequence[Schema], output: Schema) -> None:
        names = iter(output.names)
        self.names = [{name: next(names) for name in schema.names} for schema in inputs]
        self.stored = [[*own.values(), TS] for own in self.names]
        self._given = [[*own, TS] for own in self.names]

    def take(self, inputs: Sequence[Input]) -> list[pl.DataFrame | None]:
        """The new tuples of each input; None if there are none."""
        return [
            None if port.rows is None or not port.rows.height else named(port.rows, given, stored)
            for port, given, stored in zip(inputs, self._given, self.stored, strict=True)
        ]


def paired(left: pl.DataFrame, right: pl.DataFrame, rows: tuple[Places, Places], time: Places) -> pl.DataFrame:
    """The pairs of these rows: the left columns, the right ones, the timestamp."""
    made, other = _take(left, rows[0]), _take(right, rows[1])
    # In place: these frames are ours alone, and building another one costs more than all of the arithmetic.
    made.hstack(other.get_columns(), in_place=True)
    made.insert_column(made.width, pl.Series(TS, time))
    return made


def holds(frame: pl.DataFrame, condition: pl.Expr) -> Mask:
    """For which rows a condition is true."""
    return frame.with_columns(condition.fill_null(False).alias("__holds")).get_column("__holds").to_numpy()


def _take(frame: pl.DataFrame, rows: Places) -> pl.DataFrame:
    """The rows in this order, without hidden columns; all of them cost nothing."""
    frame = frame.clone()
    while frame.columns[-1] in HIDDEN:
        frame.drop_in_place(frame.columns[-1])
    if len(rows) == frame.height and rows[0] == 0 and (rows[1:] > rows[:-1]).all():
        return frame
    return take(frame, rows)


MOST_PAIRS = 1 << 22
"""More pairs of equal keys than this are not looked at together, if windows will drop most of them."""
WORTH_COUNTING = 16
"""Keys are counted only where all pairs together are so many times more; an ordinary page is not worth it."""


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
            self.joined = self.old.clone().extend(self.new)
        return self.joined


class JoinKernel:
    """Finds the pairs of one step."""

    def __init__(self, equality: Equality, residual: Expression | None, windows: tuple[Window, Window]) -> None:
        self._equality, self._windows = equality, windows
        self._residual = None if residual is None else predicate(residual)
        self.by_rows = any(window.rows is not None for window in windows)
        self.on_match: Callable[[pl.DataFrame, pl.DataFrame, tuple[Places, Places]], None] | None = None
        """Hears of the pairs of two frames, by the numbers of their rows."""

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
        return stack(parts) if parts else None

    def _meet(self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool) -> pl.DataFrame | None:
        if not left.height or not right.height or self._too_far(left, right):
            return None
        expected = self._expected(left, right)
        if expected > MOST_PAIRS and (left if probing_left else right).height > 1:
            return self._meet_in_slices(left, right, expected, probing_left=probing_left)
        rows = self._equality.match(left, right, probing_left=probing_left)
        times = left.get_column(TS).to_numpy().take(rows[0]), right.get_column(TS).to_numpy().take(rows[1])
        live = self.live(left, right, rows, times)
        if live is not None and not live.all():
            rows = rows[0][live], rows[1][live]
            times = times[0][live], times[1][live]
        return self.made(left, right, rows, times) if len(rows[0]) else None

    def made(
        self, left: pl.DataFrame, right: pl.DataFrame, rows: tuple[Places, Places], times: tuple[Places, Places]
    ) -> pl.DataFrame | None:
        """The results of pairs with equal keys that their windows let join."""
        made = paired(left, right, rows, np.maximum(*times))
        if self._residual is not None and self.on_match is None:
            made = made.filter(self._residual)
        elif self._residual is not None:
            allowed = holds(made, self._residual)
            rows, made = (rows[0][allowed], rows[1][allowed]), where(made, allowed)
        if self.on_match is not None and made.height:
            self.on_match(left, right, rows)
        return made if made.height else None

    def _expected(self, left: pl.DataFrame, right: pl.DataFrame) -> int:
        """About how many pairs have equal keys, where windows on both sides will leave few of many; otherwise 0."""
        product = left.height * right.height
        if (
            product <= WORTH_COUNTING * MOST_PAIRS
            or self.by_rows
            or any(window.range is None for window in self._windows)
        ):
            return 0
        fewer, side = (left, 0) if left.height <= right.height else (right, 1)
        return product // self._equality.distinct(fewer, side)

    def _meet_in_slices(
        self, left: pl.DataFrame, right: pl.DataFrame, expected: int, *, probing_left: bool
    ) -> pl.DataFrame | None:
        """The same for some probing tuples at a time, each with the partners that are near enough in time: a key with
        many tuples then costs what its windows hold, not the square of what a step brings."""
        probe, partner = (left, right) if probing_left else (right, left)
        own, other = (window.range or 0 for window in (self._windows if probing_left else self._windows[::-1]))
        times = partner.get_column(TS).to_numpy()
        step = max(1, probe.height * MOST_PAIRS // expected)
        found: list[pl.DataFrame] = []
        for start in range(0, probe.height, step):
            some = probe.slice(start, step)
            stamps = some.get_column(TS).to_numpy()
            near = where(partner, (times >= stamps.min() - other) & (times <= stamps.max() + own))
            pair = (some, near) if probing_left else (near, some)
            made = self._meet(*pair, probing_left=probing_left)
            found += [] if made is None else [made]
        return stack(found) if found else None

    def _too_far(self, left: pl.DataFrame, right: pl.DataFrame) -> bool:
        """Whether no two tuples are near enough in time to join; asked only where finding out costs little."""
        if self.by_rows or min(left.height, right.height) > FEW:
            return False
        left_time, right_time = left.get_column(TS).to_numpy(), right.get_column(TS).to_numpy()
        kept_left, kept_right = (window.range for window in self._windows)
        if kept_left is not None and int(right_time.min()) - int(left_time.max()) > kept_left:
            return True
        return kept_right is not None and int(left_time.min()) - int(right_time.max()) > kept_right

    def live(
        self, left: pl.DataFrame, right: pl.DataFrame, rows: tuple[Places, Places], times: tuple[Places, Places]
    ) -> Mask | None:
        """Which pairs the windows let join; None if there are no windows."""
        left_window, right_window = self._windows
        if self.by_rows:
            left_seq, left_before = (left.get_column(name).to_numpy().take(rows[0]) for name in (SEQ[0], BEFORE[0]))
            right_seq, right_before = (right.get_column(name).to_numpy().take(rows[1]) for name in (SEQ[1], BEFORE[1]))
            left_live = _stored_is_live(left_window, left_seq, right_before, times[0], times[1])
            right_live = _stored_is_live(right_window, right_seq, left_before, times[1], times[0])
            return np.where(left_seq <= right_before, left_live, right_live)
        if left_window.range is None and right_window.range is None:
            return None
        age = times[1] - times[0]
        live: Mask = np.ones(len(age), dtype=np.bool_) if left_window.range is None else age <= left_window.range
        return live if right_window.range is None else live & (age >= -right_window.range)


def _stored_is_live(
    window: Window,
    seq: Integers,
    before: Integers,
    stored: Integers,
    probing: Integers,
) -> Mask:
    """Which stored tuples are in their window when the probing ones come."""
    if window.rows is not None:
        return seq > before - window.rows
    if window.range is None:
        return np.ones(len(seq), dtype=np.bool_)
    age = probing - stored
    return (age >= 0) & (age <= window.range)
