"""The state of an aggregate whose tuples are in very many windows: partial results by pane, not by window.

A window is made of its panes when it closes, or when an early answer asks for it: some windows at a time, so that what
is in memory beside the results does not depend on the number of windows. Where many windows are made of many panes,
blocks of 2, 4, 8 … panes are merged first, each once, and a window is made of two blocks of each size at most:

    panes     1 2 3 4 5 6 7 8           the window of panes 2 to 8:  2 · (3 4) · (5 6 7 8)

Partial results are merged in the order of panes. Where they are lists of all values, windows are made of single panes.

Which windows and groups have been emitted is known from the closed ends and the emitted punctuation of the operator; a
pane is purged once all its windows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.arrays import Integers, Places
from millstream.algebra.arrays import Mask as Flags
from millstream.algebra.early import as_integer
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, Schema
from millstream.algebra.window_patterns import panes_of
from millstream.algebra.windower import Windower
from millstream.errors import ResultOutOfRange
from millstream.runtime.aggregate.bucket import check_ends, integers
from millstream.runtime.aggregate.pane_fold import grouped
from millstream.runtime.aggregate.state import GroupState, Mask, Wanted
from millstream.runtime.operator.frames import pick, put, stack, take, where

CHUNK = 1 << 16
"""Result rows, or keys of them, that are made at a time."""
MOST_ROWS = 1 << 25
"""Result rows of one step: with more the query fails, and not the process for want of memory."""
PAIRS = 1 << 20
"""Panes, each counted once for every window that has it, that are merged at a time."""
_PLACE = "__place"


class PanedState(GroupState):
    in_panes = True

    def __init__(
        self, schema: Schema, group: tuple[str, ...], aggregates: tuple[AggregateCall, ...], **given: Any
    ) -> None:
        windows: Windower = given.pop("windows")
        super().__init__(schema, group, aggregates, windows=windows.panes, **given)
        self.windows, self.panes = windows, windows.panes
        self._end = self.end or ""
        self._type = self.table.schema[self._end]
        lists = [part.name for call in aggregates if call.collects for part in call.partials if part.type.is_array]
        self._lists = lists

    def drain(self, end: int | None = None, *, distinct: bool = True) -> pl.DataFrame:
        panes = super().drain(end, distinct=distinct)
        if panes.height:
            ends = integers(panes.get_column(self._end))
            check_ends(int(ends.min()), int(ends.max()), self.windows.length)
        return panes

    def first_end(self) -> int:
        first = super().first_end()  # of a pane
        return first if first == FOREVER else self.windows.following(self.panes.start(first))

    def of_held(self, pattern: Pattern) -> Pattern | None:
        ends = panes_of(pattern.get(self._end), self.windows)
        if self._end not in pattern.attributes:
            return pattern
        return None if ends.is_empty else Pattern.of({**dict(pattern.items), self._end: ends})

    def last_closed(self, punctuations: Punctuations, end: int) -> int:
        """Return the last end of a window that punctuation may close, or time up to `end`."""
        known = [end]
        for pattern in punctuations.patterns():
            last = pattern.get(self._end).hi
            known.append(FOREVER if last is None else as_integer(last))
        return max(known)

    def gone(self, partials: pl.DataFrame, closed: Mask, others: Mask | None) -> pl.Series:
        keys = pick(partials, self.keys)
        first, last = self._ends_of(keys)
        lasts = put(keys, self._as_ends(last))
        gone = closed(lasts)
        if others is None or gone.all():
            return gone
        asked = keys.with_row_index(_PLACE).filter(others(lasts) & ~gone)
        opens = ~gone.to_numpy()
        for part in asked.partition_by(self.group) if self.group else [asked]:
            # Punctuation may close later windows before earlier ones.
            ends, places = self._ends(part, NEVER, FOREVER), part.get_column(_PLACE).to_numpy()
            each = put(take(part, np.zeros(len(ends), dtype=np.int64)), self._as_ends(ends))
            opened = np.concatenate(([0], np.cumsum(~(closed(each) | others(each)).to_numpy())))
            before, after = np.searchsorted(ends, first[places]), np.searchsorted(ends, last[places], "right")
            opens[places] = opened[before] < opened[after]
        return pl.Series(~opens)

    def so_far(self, wanted: Wanted, more: pl.DataFrame | None = None) -> pl.DataFrame:
        held = self.table.frame()
        panes = held if more is None or not more.height else stack([held, pick(more, held.columns)])

        def chosen(keys: pl.DataFrame) -> pl.Series:
            numbered = keys.hstack([pl.Series(_PLACE, np.arange(keys.height))])
            mask = np.zeros(keys.height, dtype=np.bool_)
            mask[wanted(numbered).get_column(_PLACE).to_numpy()] = True
            return pl.Series(mask)

        found: list[pl.DataFrame] = []
        rows = 0
        for some in self.windows_of(panes, chosen):
            found.append(some.head(MOST_ROWS - rows))
            rows += some.height
            if rows >= MOST_ROWS:
                break
        return stack(found) if found else self.table.empty

    def closing_windows(self, closes: Mask, after: int, until: int) -> Iterator[pl.DataFrame]:
        """Yield the partial results of windows and groups that close; raise an error where a step has too many."""
        rows = 0
        for some in self.windows_of(self.table.frame(), closes, after, until):
            rows += some.height
            if rows > MOST_ROWS:
                message = f"more than {MOST_ROWS:,} windows and groups close at once; a longer SLIDE has fewer"
                raise ResultOutOfRange(message)
            yield some

    def windows_of(
        self, panes: pl.DataFrame, chosen: Mask, after: int = NEVER, until: int = FOREVER
    ) -> Iterator[pl.DataFrame]:
        """Yield the partial results of windows and groups of these panes that are chosen by their keys, and end after
        one end and until another, in the order of their ends."""
        if not panes.height:
            return
        groups = pick(panes, self.group).unique() if self.group else None
        blocks = _Blocks(panes, self._end, self)
        size = panes.height + sum(int(panes.get_column(name).list.len().sum()) for name in self._lists)
        for some in _parts(self._ends(panes, after, until), CHUNK // (1 if groups is None else groups.height)):
            for few in _parts(some[self._any(some, groups, chosen)], PAIRS // size if self._lists else CHUNK):
                made = blocks.windows(few, single=bool(self._lists)).with_columns(pl.col(self._end).cast(self._type))
                kept = chosen(pick(made, self.keys))
                if kept.any():
                    yield where(made, kept).sort(self.keys, nulls_last=True)

    def merge(self, partials: pl.DataFrame) -> pl.DataFrame:
        return grouped(partials, self.keys, self._merges)

    def _any(self, ends: Integers, groups: pl.DataFrame | None, chosen: Mask) -> Flags:
        """Return a mask of the ends with which some group is chosen."""
        count = 1 if groups is None else groups.height
        column = self._as_ends(np.repeat(ends, count))
        keys = column.to_frame()
        if groups is not None:
            keys = keys.hstack(take(groups, np.tile(np.arange(count), len(ends))).get_columns())
        found: Flags = np.logical_or.reduce(chosen(keys).to_numpy().reshape(-1, count), axis=1)
        return found

    def _ends(self, panes: pl.DataFrame, after: int, until: int) -> Integers:
        """Return the ends of windows that hold a pane."""
        if not panes.height:
            return np.empty(0, dtype=np.int64)
        held = pl.DataFrame({self._end: np.unique(integers(panes.get_column(self._end)))})
        first, last = self._ends_of(held)
        first = np.maximum(first, NEVER if after == NEVER else self.windows.following(after))
        last = last if until == FOREVER else np.minimum(last, self.windows.closed(until))
        first[1:] = np.maximum(first[1:], self.windows.following(last[:-1]))  # both ascend
        return self.windows.each(first, last)[1]

    def _ends_of(self, panes: pl.DataFrame) -> tuple[Integers, Integers]:
        """Return the first and the last end of the windows of each pane."""
        return self.windows.assign(self.panes.start(integers(panes.get_column(self._end))))

    def _as_ends(self, ends: Integers) -> pl.Series:
        return pl.Series(self._end, ends).cast(self._type)


class _Blocks:
    """Partial results by group and block of 2^level panes, each level ascending and made when it is needed."""

    def __init__(self, panes: pl.DataFrame, end: str, state: PanedState) -> None:
        self._end, self._state = end, state
        index = integers(panes.get_column(end)) // state.panes.length - 1
        order = np.argsort(index, kind="stable")
        self._levels = [(index[order], take(panes, order))]

    def _level(self, level: int) -> tuple[Integers, pl.DataFrame]:
        while len(self._levels) <= level:
            index, blocks = self._levels[-1]
            made = self._state.merge(put(blocks, pl.Series(self._end, index >> 1)))
            index = made.get_column(self._end).to_numpy()
            order = np.argsort(index, kind="stable")
            self._levels.append((index[order], take(made, order)))
        return self._levels[level]

    def windows(self, ends: Integers, *, single: bool) -> pl.DataFrame:
        """Return the partial results of the windows with these ends; `single`: made of single panes."""
        pane = self._state.panes.length
        low, high = self._state.windows.start(ends) // pane, ends // pane
        before: list[pl.DataFrame] = []
        after: list[pl.DataFrame] = []
        level = 0
        while True:
            index, blocks = self._level(level)
            first, last = np.searchsorted(index, low), np.searchsorted(index, np.maximum(low, high))
            if single or (last - first).sum() <= PAIRS:
                before.append(self._of(blocks, ends, first, last))
                break
            odd = (low & 1 == 1) & (low < high)
            before.append(self._of(blocks, ends[odd], first[odd], np.searchsorted(index, low[odd] + 1)))
            low = low + odd
            odd = (high & 1 == 1) & (low < high)
            after.append(self._of(blocks, ends[odd], np.searchsorted(index, high[odd] - 1), last[odd]))
            low, high, level = low >> 1, high >> 1, level + 1
        return self._state.merge(stack([*before, *reversed(after)]))

    def _of(self, blocks: pl.DataFrame, ends: Integers, first: Places, last: Places) -> pl.DataFrame:
        """Return the blocks at the places from `first` to before `last` for each end."""
        counts = last - first
        places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return put(take(blocks, places), pl.Series(self._end, np.repeat(ends, counts)))


def _parts(ends: Integers, most: int) -> Iterator[Integers]:
    size = max(most, 1)
    return (ends[place : place + size] for place in range(0, len(ends), size))
