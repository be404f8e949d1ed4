"""The state of a grouped aggregate: partial results by window end and group.

Tuples wait as raw, pruned pages and are pre-aggregated many pages at a time: when enough of them wait, when a group
closes, and when the state is read. Pre-aggregation is by pane; only then are panes spread to the windows, so a tuple is
touched once however many windows hold it. Partial results from elsewhere wait in the same way and are merged where
tuples would be aggregated. The table may hold several partial results of one group (each fold appends one segment,
which is also what a checkpoint writes); they are merged when the group closes, or when the table has doubled. Partial
results of a group are held, and merged, in the order in which their tuples arrived. All aggregates must therefore be
mergeable, at least in that order.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.reduction import GREATEST, Reduction
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import Restriction
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.algebra.time_limits import own_limits
from millstream.algebra.types import Type
from millstream.algebra.window_patterns import stretch, times_within
from millstream.algebra.windower import INSTANTS, Windower
from millstream.runtime.aggregate.bucket import integers, spread
from millstream.runtime.aggregate.pane_fold import PaneFold, grouped
from millstream.runtime.operator.frames import pick, put, stack, where
from millstream.runtime.operator.keys import normalized
from millstream.runtime.operator.time_closing import TimeClosing
from millstream.runtime.state.table import StateTable

FOLD_ROWS = 131_072
"""Pre-aggregate when more tuples than this wait."""
PROD_ROWS = 4_096
"""Merge the table when the partial results that prods have made exceed this number."""
Mask = Callable[[pl.DataFrame], pl.Series]
Wanted = Callable[[pl.DataFrame], pl.DataFrame]
"""Returns some of the rows, by their group."""


class GroupState:
    """Partial results by `end` (its name and type; None: no `windows`) and group. `attribute` is the windowing
    attribute, the stream's time by default; with another one, or without windows, the state keeps the newest timestamp
    of every group. `panes` names the column of pane ends if the input consists of partial results of whole panes. With
    `partials` it consists of partial results of some tuples of a pane, stamped with a time in it."""

    in_panes = False

    def __init__(
        self,
        schema: Schema,
        group: tuple[str, ...],
        aggregates: tuple[AggregateCall, ...],
        *,
        end: tuple[str, pl.DataType] | None = None,
        windows: Windower = INSTANTS,
        attribute: str | None = None,
        panes: str | None = None,
        partials: bool = False,
    ) -> None:
        if attribute == schema.time:
            attribute = None
        self.end = end[0] if end else None
        self.group, self.windows, self._held = group, windows, windows
        self.timed = end is not None and attribute is None
        """True if time closes windows: they are over the stream's time."""
        offsets = {} if attribute or panes or not end else _offsets(schema, group)
        self._offsets = offsets if list(offsets) != [schema.time] else {}
        self.closed_by = (panes or attribute or (TS if self._offsets else schema.time)) if end else None
        """The input attribute whose upper bounds close windows."""
        followed = () if self.timed else (*group, *([attribute] if end and attribute else []))
        self.closing = TimeClosing(own_limits(schema.trails, followed))
        """What time closes, of the groups and of windows over another attribute."""
        dated = self.closed_by not in (None, TS) and schema.polars[self.closed_by or TS].is_temporal()
        self.dated = dated, end is not None and end[1].is_temporal()
        """Whether that attribute, and the end of windows, are timestamps."""
        self.over_panes = self._merged_input = panes is not None
        self._gaps = end is not None and panes is None and windows.gaps
        self._merges_windows = panes is not None or not windows.tumbling
        time = panes or attribute or TS
        types = {name: type_ for name, type_ in schema.polars.items() if name in group}
        partial_types = {partial.name: partial.type.polars for a in aggregates for partial in a.partials}
        stamp = [Reduction(TS, GREATEST, TS, pl.Int64())] if not self.timed else []
        merges = [merge for a in aggregates for merge in a.merges()] + stamp
        reductions = merges if partials else [r for a in aggregates for r in a.reductions()] + stamp
        self.keys = [*([self.end] if self.end is not None else []), *group]
        self._merges = [merge.expression() for merge in merges]
        self._partials = [reduction.expression() for reduction in reductions]
        if panes or partials:
            arguments = list(partial_types)
        else:
            arguments = [name for a in aggregates for name in a.columns]
        stamps = [TS] if stamp or (not panes and any(a.ordered for a in aggregates)) else []
        self._read = list(dict.fromkeys([*([time] if end else []), *group, *arguments, *stamps]))
        self._column, self._time = time, _as_integer(time, schema)
        self._folds: tuple[PaneFold, PaneFold] | None = None  # of the input by pane, of the table by window end
        if end:
            first = PaneFold(self._time, windows.panes, group, reductions, end[0], column=(time, 0))
            by_end, step = pl.col(end[0]).cast(pl.Int64), windows.step
            second = PaneFold(by_end - step, windows, group, merges, end[0], column=(end[0], -step))
            self._folds = first, second
        self._nullable = attribute if end and not panes else None
        self.windowing = attribute if end else None
        """The windowing attribute, if it is not the stream's time."""
        self._pending: list[pl.DataFrame] = []
        self._waiting = 0
        self._merged_rows = 0  # rows of the table after the last merge
        self._distinct = False  # true if the table is known to hold each group once
        self.table = StateTable(dict([end] if end else []) | types | partial_types | {r.name: r.type for r in stamp})

    def over_time(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations with bounds on columns at a fixed distance from the timestamp as bounds on it."""
        for name, offset in self._offsets.items():
            # A bound on the time itself closes only windows that end by it, whether or not it includes the bound.
            tick = 1 if offset else 0
            punctuations = punctuations.map_ranges(name, _moved(offset, tick), TS)
            punctuations = punctuations.map_upper(name, _less(offset), TS, "<", pl.Int64(), tick)
        return punctuations

    def __bool__(self) -> bool:
        return bool(self._pending) or len(self.table) > 0

    def take(self, rows: pl.DataFrame) -> None:
        """Add tuples; those that belong to no window are dropped at once."""
        page = normalized(rows if rows.width == len(self._read) else pick(rows, self._read), self.group)
        if self._nullable is not None:
            known = page.get_column(self._nullable).is_not_null()
            page = page if known.all() else where(page, known)
        if self._gaps:
            page = page.filter(self._held.holds(self._time))
        if page.height:
            self._pending.append(page)
            self._waiting += page.height

    @property
    def full(self) -> bool:
        """True if enough tuples wait to be worth pre-aggregating."""
        return self._waiting > FOLD_ROWS

    def drain(self, end: int | None = None, *, distinct: bool = True) -> pl.DataFrame:
        """Take the waiting tuples out as partial results, one a group; without `distinct` there may be several.

        With `end` (only for windows over the hidden timestamp), tuples of no window that ends by then keep waiting: a
        tuple is then grouped only once, with all others of its pane.
        """
        ready, self._pending = self._pending, []
        if end is not None and end != FOREVER:
            ready, self._pending = self._before(ready, end + 1 if self._merged_input else end)
        self._waiting = sum(page.height for page in self._pending)
        if not ready:
            return self.table.empty
        frame = stack(ready)
        if self.end is None or self._folds is None:
            return grouped(frame, self.keys, self._partials)
        if self._merged_input:
            panes = put(frame, pl.Series(self.end, integers(frame.get_column(self._column))))
        else:
            panes = self._folds[0](frame)
        partials = spread(panes, self.end, self._held)
        merges = self._merges_windows
        if merges and (not self._merged_input or not distinct):
            ends = panes.get_column(self.end)
            merges = ends.min() != ends.max()  # the windows of a single pane differ
        return self._with_end(self._merge(partials) if merges else partials)

    def _before(self, pages: list[pl.DataFrame], limit: int) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """Split the pages at a time."""
        before: list[pl.DataFrame] = []
        after: list[pl.DataFrame] = []
        for page in pages:
            times = integers(page.get_column(self._column))
            if times.max() < limit:
                before.append(page)
            elif times.min() >= limit:
                after.append(page)
            else:
                early = times < limit
                before.append(where(page, early))
                after.append(where(page, ~early))
        return before, after

    def append(self, partials: pl.DataFrame, *, distinct: bool = True) -> None:
        """Hold partial results, with `distinct` at most one a group. Prods make others: many small ones are merged
        sooner, since the next prod reads all of them."""
        if partials.height:
            self._distinct = distinct and len(self.table) == 0
            self.table.append(partials)
            if len(self.table) > 2 * self._merged_rows + (FOLD_ROWS if distinct else PROD_ROWS):
                self.table.replace(self._merge(self.table.frame()))
                self._merged_rows, self._distinct = len(self.table), True

    def close(self, new: pl.DataFrame, closes: Callable[[pl.DataFrame], pl.Series]) -> pl.DataFrame:
        """Remove and return the groups that close, of those held and the new ones; hold the other new ones."""
        held = self.table.frame()
        both = new if not held.height else stack([held, pick(new, held.columns)]) if new.height else held
        gone = closes(both)
        if not gone.any():
            self.append(new)
            return self.table.empty
        old, fresh = gone.head(held.height), gone.slice(held.height)
        distinct = not old.any() or (self._distinct and not fresh.any())
        self.table.keep(~old)
        self.append(new if not fresh.any() else where(new, ~fresh))
        closed = both if gone.all() else where(both, gone)
        return closed if distinct else self._merge(closed)

    def merged(self) -> pl.DataFrame:
        """Return the partial results held, one row per group."""
        return self.table.frame() if self._distinct else self._merge(self.table.frame())

    def gone(self, partials: pl.DataFrame, closed: Mask, others: Mask | None) -> pl.Series:
        """Return a mask of the partial results that no open window has: windows that time has `closed`, and `others`
        that punctuation has."""
        return closed(partials) if others is None else closed(partials) | others(partials)

    def of_held(self, pattern: Pattern) -> Pattern | None:
        """Return a pattern of windows and groups as one of what is held; None if nothing of it is in these alone."""
        return pattern

    def so_far(self, wanted: Wanted, more: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the partial results of some groups, and `more` of them that are not held, one row per group."""
        held = wanted(self.table.frame())
        if more is None or not more.height:
            return held if self._distinct else self._merge(held)
        return self._merge(stack([held, pick(wanted(more), held.columns)]))

    def release(self, new: pl.DataFrame) -> pl.DataFrame:
        """Remove and return everything held, and the new partial results: of few, a group may have several rows, which
        are merged with others above."""
        held = self.table.frame()
        if not held.height:
            return new
        self.table.replace(self.table.empty)
        if not new.height and self._distinct:
            return held
        both = stack([held, pick(new, held.columns)]) if new.height else held
        return both if both.height <= PROD_ROWS else self._merge(both)

    def partials(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the partial results of these tuples alone, and hold nothing of them."""
        held = self._pending, self._waiting
        self._pending, self._waiting = [], 0
        self.take(rows)
        made = self.drain()
        self._pending, self._waiting = held
        return made

    def merged_with(self, partials: pl.DataFrame) -> pl.DataFrame:
        """Return the partial results held and these, one row per group."""
        held = self.table.frame()
        return self._merge(stack([held, pick(partials, held.columns)])) if held.height else partials

    def first_end(self) -> int:
        """Return the lowest end of a window that holds a tuple."""
        ends = [int(integers(self.table.frame().get_column(self.end)).min())] if self.end and len(self.table) else []
        times = [int(integers(page.get_column(self._column)).min()) for page in self._pending]
        times = [self._held.panes.start(time) for time in times] if self._merged_input else times
        return min([*ends, *map(self._held.following, times)], default=FOREVER)

    def newest(self) -> int:
        """Return the timestamp of the group whose newest tuple is oldest."""
        oldest: int = self._merge(self.table.frame()).select(pl.col(TS).min()).item()
        return oldest

    def _merge(self, partials: pl.DataFrame) -> pl.DataFrame:
        """Return one row per group."""
        if self._folds is None or not partials.height:
            return grouped(partials, self.keys, self._merges)
        return self._with_end(self._folds[1](partials))

    def _with_end(self, partials: pl.DataFrame) -> pl.DataFrame:
        """Return partial results with window ends in the table's type."""
        if self.end is None or self.table.schema[self.end] == partials.get_column(self.end).dtype:
            return partials
        return partials.with_columns(pl.col(self.end).cast(self.table.schema[self.end]))

    def count(self) -> int:
        """Return the number of groups, per window, in the table."""
        frame = self.table.frame()
        return frame.select(self.keys).n_unique() if self.keys and frame.height else min(frame.height, 1)


def _offsets(schema: Schema, group: tuple[str, ...]) -> dict[str, int]:
    """Return the columns whose upper bounds are bounds on time, unless they are groups themselves."""
    return {n: offset for n, offset in schema.times.items() if n == schema.time or n not in group}


def _less(offset: int) -> Callable[[pl.Expr], pl.Expr]:
    return lambda bound: bound - offset


def _moved(offset: int, tick: int) -> Callable[[Restriction], Restriction]:
    """Return ranges of a column at a fixed distance from the timestamp as ranges of it."""

    def change(restriction: Restriction) -> Restriction:
        first, last = stretch(restriction, tick)
        return times_within((first - offset, last if last == FOREVER else last - offset))

    return change


def _as_integer(name: str, schema: Schema) -> pl.Expr:
    """Return a time column as the integer for window arithmetic."""
    column = pl.col(name)
    if name != TS and schema.type_of(name) is Type.DATE:
        column = column.cast(pl.Datetime("us"))
    return column.cast(pl.Int64)
