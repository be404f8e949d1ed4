"""The state of a grouped aggregate: partial results by window end and group.

Tuples wait as raw, pruned pages and are pre-aggregated many pages at a time: when enough of them wait, when something
closes, and when somebody looks at the state. Pre-aggregation goes by pane and only then spreads to the windows, so a
tuple is touched once however many windows hold it. The table may hold several partial results of the same group (each
fold appends one segment, which is also what a checkpoint writes); they are merged when the group closes, or when the
table has doubled.
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type
from millstream.runtime.accumulate import Aggregation, grouped
from millstream.runtime.bucket import pane_end, pane_length, spread, window_ids
from millstream.runtime.state import StateTable

FOLD_ROWS = 65_536
"""Pre-aggregate when more tuples than this wait."""
FEW_PANES = 4


class GroupState:
    """Partial results by `end` (its name and type; None: no windows) and group. `attribute` is what is windowed on, the
    hidden timestamp by default; `stamped` keeps the newest timestamp of every group. With `panes` naming a column, the
    input is made of partial results of the panes that end there."""

    def __init__(
        self,
        schema: Schema,
        group: tuple[str, ...],
        aggregations: tuple[Aggregation, ...],
        *,
        end: tuple[str, pl.DataType] | None = None,
        range_: int = 0,
        slide: int = 0,
        attribute: str | None = None,
        stamped: bool = False,
        panes: str | None = None,
    ) -> None:
        self.end = end[0] if end else None
        self._range, self._slide = range_, slide
        self._merged_input = panes is not None
        time = panes or attribute or TS
        types = {name: type_ for name, type_ in schema.polars.items() if name in group}
        partial_types = {name: type_ for a in aggregations for name, type_ in a.partial_types.items()}
        stamp = [pl.col(TS).max()] if stamped else []
        self.keys = [*([self.end] if self.end is not None else []), *group]
        self._merges = [merge for a in aggregations for merge in a.merges()] + stamp
        self._partials = [partial for a in aggregations for partial in a.partials()] + stamp
        if panes:
            arguments = list(partial_types)
        else:
            arguments = [a.argument for a in aggregations if a.argument is not None]
        self._read = list(dict.fromkeys([*([time] if end else []), *group, *arguments, *([TS] if stamped else [])]))
        self._time = _as_integer(time, schema)
        self._nullable = attribute if end and not panes else None
        self._pending: list[pl.DataFrame] = []
        self._waiting = 0
        self._settled = 0
        self.table = StateTable(
            ({end[0]: end[1]} if end else {}) | types | partial_types | ({TS: pl.Int64()} if stamped else {})
        )

    def __bool__(self) -> bool:
        return bool(self._pending) or len(self.table) > 0

    def take(self, rows: pl.DataFrame) -> None:
        """Add tuples; those that belong to no window are gone at once."""
        page = pl.DataFrame([rows.get_column(name) for name in self._read])
        if self._nullable is not None:
            page = page.filter(pl.col(self._nullable).is_not_null())
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

    def drain(self) -> pl.DataFrame:
        """The waiting tuples as partial results, which are handed over and no longer held."""
        if not self._pending:
            return pl.DataFrame(schema=self.table.schema)
        frame = pl.concat(self._pending) if len(self._pending) > 1 else self._pending[0]
        self._pending, self._waiting = [], 0
        group = self.keys[1:] if self.end is not None else self.keys
        if self.end is None:
            return grouped(frame, group, self._partials).select(list(self.table.schema))
        if self._merged_input:
            made = frame.with_columns(self._time.alias(self.end))
        else:
            made = self._panes(frame, self.end, group)
        made = spread(made, self.end, self._range, self._slide)
        if self._merged_input or self._range != self._slide:
            made = grouped(made, self.keys, self._merges)
        return made.with_columns(pl.col(self.end).cast(self.table.schema[self.end])).select(list(self.table.schema))

    def _panes(self, frame: pl.DataFrame, end: str, group: list[str]) -> pl.DataFrame:
        """Partial results by pane and group. Grouping by one key less is so much faster that panes are taken one by
        one if there are few, as there are wherever tuples come roughly in order."""
        pane = pane_length(self._range, self._slide)
        first, last = frame.select(
            pane_end(self._time.min(), pane), pane_end(self._time.max(), pane).alias("last")
        ).row(0)
        if (last - first) // pane >= FEW_PANES:
            return grouped(frame, [pane_end(self._time, pane).alias(end), *group], self._partials)
        made: list[pl.DataFrame] = []
        for at in range(first, last + 1, pane):
            part = frame if first == last else frame.filter(self._time.is_between(at - pane, at, closed="left"))
            made.append(grouped(part, group, self._partials).with_columns(pl.lit(at, pl.Int64).alias(end)))
        return pl.concat(made)

    def append(self, partials: pl.DataFrame) -> None:
        self.table.append(partials)
        if len(self.table) > 2 * self._settled + FOLD_ROWS:
            self.table.replace(self.merge(self.table.frame()))
            self._settled = len(self.table)

    def merge(self, partials: pl.DataFrame) -> pl.DataFrame:
        """One row per group."""
        return grouped(partials, self.keys, self._merges).select(list(self.table.schema))

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
