"""The state of a grouped aggregate: partial results by window end and group.

Tuples wait as raw, pruned pages and are pre-aggregated many pages at a time: when enough of them wait, when something
closes, and when somebody looks at the state. Pre-aggregation goes by pane and only then spreads to the windows, so a
tuple is touched once however many windows hold it. Partial results made elsewhere wait in the same way and are merged
where tuples would be aggregated. The table may hold several partial results of the same group (each
fold appends one segment, which is also what a checkpoint writes); they are merged when the group closes, or when the
table has doubled. So it holds mergeable aggregates only.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.reduction import GREATEST, Reduction
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.algebra.types import Type
from millstream.runtime.aggregate.bucket import integers, pane_length, spread, window_ids
from millstream.runtime.aggregate.pane_fold import PaneFold, grouped
from millstream.runtime.operator.frames import pick, stack, where
from millstream.runtime.state.table import StateTable

FOLD_ROWS = 131_072
"""Pre-aggregate when more tuples than this wait."""


class GroupState:
    """Partial results by `end` (its name and type; None: no windows) and group. `attribute` is what is windowed on, the
    hidden timestamp by default; `stamped` keeps the newest timestamp of every group. With `panes` naming a column, the
    input is made of partial results of the panes that end there; with `partials`, of partial results of some tuples of
    a pane, stamped with a time in it."""

    def __init__(
        self,
        schema: Schema,
        group: tuple[str, ...],
        aggregates: tuple[AggregateCall, ...],
        *,
        end: tuple[str, pl.DataType] | None = None,
        range_: int = 0,
        slide: int = 0,
        attribute: str | None = None,
        stamped: bool = False,
        panes: str | None = None,
        partials: bool = False,
    ) -> None:
        self.end = end[0] if end else None
        self._range, self._slide = range_, slide
        self._merged_input = panes is not None
        time = panes or attribute or TS
        types = {name: type_ for name, type_ in schema.polars.items() if name in group}
        partial_types = {partial.name: partial.type.polars for a in aggregates for partial in a.partials}
        stamp = [Reduction(TS, GREATEST, TS, pl.Int64())] if stamped else []
        merges = [merge for a in aggregates for merge in a.merges()] + stamp
        reductions = merges if partials else [made for a in aggregates for made in a.reductions()] + stamp
        self.keys = [*([self.end] if self.end is not None else []), *group]
        self._merges = [merge.expression() for merge in merges]
        self._partials = [reduction.expression() for reduction in reductions]
        if panes or partials:
            arguments = list(partial_types)
        else:
            arguments = [a.argument for a in aggregates if a.argument is not None]
        self._read = list(dict.fromkeys([*([time] if end else []), *group, *arguments, *([TS] if stamped else [])]))
        self._column, self._time = time, _as_integer(time, schema)
        self._folds: tuple[PaneFold, PaneFold] | None = None  # of the input by pane, of what is held by window end
        if end:
            first = PaneFold(self._time, pane_length(range_, slide), group, reductions, end[0])
            self._folds = first, PaneFold(pl.col(end[0]).cast(pl.Int64) - slide, slide, group, merges, end[0])
        self._nullable = attribute if end and not panes else None
        self._pending: list[pl.DataFrame] = []
        self._waiting = 0
        self._settled = 0  # how many groups the table had when it was last merged
        self._distinct = False  # whether the table is known to hold each group once
        self.table = StateTable(
            ({end[0]: end[1]} if end else {}) | types | partial_types | ({TS: pl.Int64()} if stamped else {})
        )

    def __bool__(self) -> bool:
        return bool(self._pending) or len(self.table) > 0

    def take(self, rows: pl.DataFrame) -> None:
        """Add tuples; those that belong to no window are gone at once."""
        if rows.width == len(self._read):
            page = rows
        else:
            page = pick(rows, self._read)
        if self._nullable is not None:
            known = page.get_column(self._nullable).is_not_null()
            page = page if known.all() else where(page, known)
        if self.end is not None and self._range < self._slide and not self._merged_input:
            first, last = window_ids(self._time, self._range, self._slide)
            page = page.filter(first <= last)
        if page.height:
            self._pending.append(page)
            self._waiting += page.height

    @property
    def full(self) -> bool:
        """Whether enough tuples wait to be worth pre-aggregating."""
        return self._waiting > FOLD_ROWS

    def drain(self, end: int | None = None) -> pl.DataFrame:
        """The waiting tuples as partial results, one a group, which are handed over and no longer held.

        With `end`, tuples that lie in no window that ends by then may go on waiting (if the hidden timestamp is what
        windows are over): a tuple is then grouped only once, with all others of its pane.
        """
        ready, self._pending = self._pending, []
        if end is not None and end != FOREVER:
            ready, self._pending = self._before(ready, end + 1 if self._merged_input else end)
        self._waiting = sum(page.height for page in self._pending)
        if not ready:
            return pl.DataFrame(schema=self.table.schema)
        frame = stack(ready)
        if self.end is None or self._folds is None:
            return grouped(frame, self.keys, self._partials)
        made = frame.with_columns(self._time.alias(self.end)) if self._merged_input else self._folds[0](frame)
        made = spread(made, self.end, self._range, self._slide)
        merged = self._merged_input or self._range != self._slide
        return self._with_end(self._merge(made) if merged else made)

    def _before(self, pages: list[pl.DataFrame], limit: int) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """The pages parted at a time."""
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

    def append(self, partials: pl.DataFrame) -> None:
        """Hold partial results, one a group at most."""
        if partials.height:
            self._distinct = len(self.table) == 0
            self.table.append(partials)
            if len(self.table) > 2 * self._settled + FOLD_ROWS:
                self.table.replace(self._merge(self.table.frame()))
                self._settled, self._distinct = len(self.table), True

    def close(self, new: pl.DataFrame, closes: Callable[[pl.DataFrame], pl.Series]) -> pl.DataFrame:
        """Take the groups that close out of those held and the new ones; the other new ones are held from now on."""
        held = self.table.frame()
        both = new if not held.height else stack([held, pick(new, held.columns)]) if new.height else held
        gone = closes(both)
        if not gone.any():
            self.append(new)
            return pl.DataFrame(schema=self.table.schema)
        old, fresh = gone.head(held.height), gone.slice(held.height)
        distinct = not old.any() or (self._distinct and not fresh.any())
        self.table.keep(~old)
        self.append(new if not fresh.any() else where(new, ~fresh))
        closed = both if gone.all() else where(both, gone)
        return closed if distinct else self._merge(closed)

    def newest(self) -> int:
        """The timestamp of the group whose newest tuple is oldest."""
        oldest: int = self._merge(self.table.frame()).select(pl.col(TS).min()).item()
        return oldest

    def _merge(self, partials: pl.DataFrame) -> pl.DataFrame:
        """One row per group."""
        if self._folds is None or not partials.height:
            return grouped(partials, self.keys, self._merges)
        return self._with_end(self._folds[1](partials))

    def _with_end(self, partials: pl.DataFrame) -> pl.DataFrame:
        """With ends in the type that the table has."""
        if self.end is None or self.table.schema[self.end] == partials.schema[self.end]:
            return partials
        return partials.with_columns(pl.col(self.end).cast(self.table.schema[self.end]))

    def count(self) -> int:
        """How many groups (of a window) the table holds."""
        frame = self.table.frame()
        return frame.select(self.keys).n_unique() if self.keys and frame.height else min(frame.height, 1)


def _as_integer(name: str, schema: Schema) -> pl.Expr:
    """A time as the integer that window arithmetic works on."""
    column = pl.col(name)
    if name != TS and schema.type_of(name) is Type.DATE:
        column = column.cast(pl.Datetime("us"))
    return column.cast(pl.Int64)
