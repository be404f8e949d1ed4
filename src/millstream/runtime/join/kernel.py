"""Pairs of a symmetric join, a whole step at a time.

A step has new tuples of one side or of both; the state holds the older ones. Each pair of the step is found once: new
left tuples probe the stored right ones, then all left ones, stored and new, are joined with the new right ones (or the
mirror image, whichever copies fewer tuples). The condition that windows put on a pair:

| windows | the pair (a, b) joins if |
|---|---|
| RANGE or unbounded on both sides | `b.ts - a.ts <= W_A` and `a.ts - b.ts <= W_B`, where the side is bounded |
| ROWS on some side | the tuple that arrived first is still in its own window when the other arrives |

A tuple is in its window if it is among the last n of its stream (ROWS) or at most W older (RANGE); an unbounded window
holds every tuple. With ROWS every tuple carries its number in its own stream (`seq`) and the number of tuples of the
other stream before it (`before`): a precedes b iff `a.seq <= b.before`. All tuples are counted, stored or not, so
purging never shifts a window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask, Places
from millstream.algebra.expression import Expression
from millstream.algebra.schema import TS, Schema
from millstream.algebra.window import Window
from millstream.runtime.expression.condition import Condition
from millstream.runtime.join.index import Equality
from millstream.runtime.join.stretches import Near, Pairs
from millstream.runtime.operator.contract import Input
from millstream.runtime.operator.frames import pick, stack, take, where

FEW = 64
"""Up to this many tuples, comparing times costs less than a join without results."""
SEQ = ("__left_seq", "__right_seq")
BEFORE = ("__left_before", "__right_before")
HIDDEN = (TS, *SEQ, *BEFORE)


def named(rows: pl.DataFrame, columns: list[str], names: list[str]) -> pl.DataFrame:
    """Return the columns, in this order, under other names; no data is copied."""
    renamed = rows.clone() if rows.columns == columns else pick(rows, columns)
    renamed.columns = names
    return renamed


class JoinColumns:
    """Columns of a join's inputs and of its output, which has the columns of the first input, then the second's, ….

    `names[i]` maps the columns of input i to those of the output; `stored[i]` lists the latter and the time.
    """

    def __init__(self, inputs: Sequence[Schema], output: Schema) -> None:
        names = iter(output.names)
        self.names = [{name: next(names) for name in schema.names} for schema in inputs]
        self.stored = [[*own.values(), TS] for own in self.names]
        self._arriving = [[*own, TS] for own in self.names]

    def take(self, inputs: Sequence[Input]) -> list[pl.DataFrame | None]:
        """Return the new tuples of each input, under the output's names; None if there are none."""
        return [
            None if port.rows is None or not port.rows.height else self.renamed(place, port.rows)
            for place, port in enumerate(inputs)
        ]

    def renamed(self, place: int, rows: pl.DataFrame) -> pl.DataFrame:
        """Return tuples of an input under the output's names."""
        return named(rows, self._arriving[place], self.stored[place])


def paired(left: pl.DataFrame, right: pl.DataFrame, rows: tuple[Places, Places], time: Places) -> pl.DataFrame:
    """Return the pairs of these rows: the left columns, the right ones, the timestamp."""
    pairs, other = _take(left, rows[0]), _take(right, rows[1])
    # In place: no other code holds these frames, and building another one costs more than all of the arithmetic.
    pairs.hstack(other.get_columns(), in_place=True)
    pairs.insert_column(pairs.width, pl.Series(TS, time))
    return pairs


def _take(frame: pl.DataFrame, rows: Places) -> pl.DataFrame:
    """Return the rows in this order, without hidden columns; nothing is copied if they are all rows in order."""
    frame = frame.clone()
    while frame.columns[-1] in HIDDEN:
        frame.drop_in_place(frame.columns[-1])
    if len(rows) == frame.height and rows[0] == 0 and (rows[1:] > rows[:-1]).all():
        return frame
    return take(frame, rows)


class Half:
    """One side of a step: stored and new tuples."""

    __slots__ = ("joined", "new", "old")

    def __init__(self, old: pl.DataFrame, new: pl.DataFrame | None) -> None:
        self.old, self.new = old, new
        self.joined: pl.DataFrame | None = None
        """`both`, once it has been built."""

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

    def __init__(
        self,
        equality: Equality,
        residual: Expression | None,
        windows: tuple[Window, Window],
        *,
        numbered: bool = False,
    ) -> None:
        self._equality, self._windows = equality, windows
        self._residual = None if residual is None else Condition(residual)
        self.by_rows = numbered or any(window.rows is not None for window in windows)
        """True if every tuple carries its number, for windows that count rows or a choice by order of arrival."""
        self.on_match: Callable[[pl.DataFrame, pl.DataFrame, tuple[Places, Places]], None] | None = None
        """Called with the pairs of two frames as row numbers."""

    def pairs(self, left: Half, right: Half) -> pl.DataFrame | None:
        """Return the results of a step; if only one side has new tuples, by probing tuple and then by partner."""
        extends_left = (
            left.new is not None
            and right.new is not None
            and (not right.old.height or (left.old.height > 0 and left.new.height < right.new.height))
        )
        found: list[pl.DataFrame] = []
        if left.new is not None:
            found += self._meet(left.new, right.old if extends_left else right.both, probing_left=True)
        if right.new is not None:
            found += self._meet(left.both if extends_left else left.old, right.new, probing_left=False)
        return stack(found) if found else None

    def _meet(self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool) -> list[pl.DataFrame]:
        if not left.height or not right.height or self._too_far(left, right):
            return []
        found: list[pl.DataFrame] = []
        for rows in self.candidates(left, right, probing_left=probing_left):
            times = left.get_column(TS).to_numpy().take(rows[0]), right.get_column(TS).to_numpy().take(rows[1])
            live = self.live(left, right, rows, times)
            if live is not None and not live.all():
                rows = rows[0][live], rows[1][live]
                times = times[0][live], times[1][live]
            if len(rows[0]):
                found += self.results(left, right, rows, times)
        return found

    def candidates(self, left: pl.DataFrame, right: pl.DataFrame, *, probing_left: bool) -> Iterator[Pairs]:
        """Return the pairs to look at, in portions: those with equal keys, and near in time where there would be many
        more of them than rows. Keys with many tuples then cost what their windows hold, not the square of the step."""
        near = None
        if not self.by_rows and any(window.range is not None for window in self._windows):
            probe, partner = (left, right) if probing_left else (right, left)
            own, other = (window.range for window in (self._windows if probing_left else self._windows[::-1]))
            near = Near(probe.get_column(TS).to_numpy(), partner.get_column(TS).to_numpy(), older=other, newer=own)
        return self._equality.candidates(left, right, near, probing_left=probing_left)

    def results(
        self, left: pl.DataFrame, right: pl.DataFrame, rows: tuple[Places, Places], times: tuple[Places, Places]
    ) -> list[pl.DataFrame]:
        """Return the results of live pairs with equal keys: those that satisfy the residual predicate."""
        pairs = paired(left, right, rows, np.maximum(*times))
        if self._residual is not None and self.on_match is None:
            pairs = self._residual.filter(pairs)
        elif self._residual is not None:
            allowed = self._residual.holds(pairs)
            rows, pairs = (rows[0][allowed], rows[1][allowed]), where(pairs, allowed)
        if not pairs.height:
            return []
        if self.on_match is not None:
            self.on_match(left, right, rows)
        return [pairs]

    def _too_far(self, left: pl.DataFrame, right: pl.DataFrame) -> bool:
        """True if no two tuples are near enough in time to join; checked only where the check is cheap."""
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
        """Return the mask of the pairs that the windows let join; None if there are no windows."""
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


def _stored_is_live(window: Window, seq: Integers, before: Integers, stored: Integers, probing: Integers) -> Mask:
    """Return the mask of the stored tuples that are in their window when the probing ones arrive."""
    if window.rows is not None:
        return seq > before - window.rows
    if window.range is None:
        return np.ones(len(seq), dtype=np.bool_)
    age = probing - stored
    return (age >= 0) & (age <= window.range)
