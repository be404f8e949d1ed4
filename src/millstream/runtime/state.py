"""Operator state as immutable segments: appends add one, purges drop or rewrite some.

What a checkpoint has to write is what changed, not what is held: `changes()` names the segments put and dropped since
the last call. `frame()` is the whole content in order of arrival, cached until something changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

COMPACT_SEGMENTS = 32
"""Merge the small segments when there are more than this many."""
RECHUNK_ROWS = 1 << 16
"""Up to this many rows one chunk saves more in joins than it costs to make."""
FEW_SEGMENTS = 3
"""Rewriting more segments than this one by one costs more than rewriting all of them at once."""


@dataclass(slots=True)
class Changes:
    put: dict[int, pl.DataFrame] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)


class StateTable:
    """A bag of rows in insertion order."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self.schema = dict(schema)
        self._segments: dict[int, pl.DataFrame] = {}
        self._next = 0
        self._changes = Changes()
        self._frame: pl.DataFrame | None = None
        self._recent: list[pl.DataFrame] = []
        """What has been appended since `_frame` was made."""
        self._names = list(self.schema)
        self._count = 0
        self._ascends: dict[str, bool] = {}
        """Whether `frame()` is known to ascend in a column."""

    def __len__(self) -> int:
        return self._count

    def append(self, rows: pl.DataFrame, whole: pl.DataFrame | None = None) -> None:
        """Add rows (columns in any order). `whole`, if the caller has it at hand, is the content afterwards."""
        if rows.height == 0:
            return
        for column, ascends in self._ascends.items():
            self._ascends[column] = ascends and self._goes_on(column, rows.get_column(column))
        rows = rows if rows.columns == self._names else rows.select(self._names)
        frame, recent = self._frame, [*self._recent, rows]
        self._put(self._next, rows)
        self._next += 1
        if whole is not None:
            self._frame = whole
        elif frame is not None:
            self._frame, self._recent = frame, recent
        if len(self._segments) > COMPACT_SEGMENTS:
            known = self._ascends.copy()
            self.replace(self.frame())
            self._ascends = known

    def purge(self, gone: pl.Expr) -> pl.DataFrame:
        """Remove the rows for which the expression is true and return them (null counts as false)."""
        if not self._segments:
            return self.frame()
        removed: list[pl.DataFrame] = []
        for key, segment in list(self._segments.items()):
            mask = segment.select(gone.fill_null(False).alias("gone")).to_series()
            if mask.len() != segment.height:
                mask = pl.Series([bool(mask[0])] * segment.height, dtype=pl.Boolean)
            if not mask.any():
                continue
            removed.append(segment.filter(mask))
            if mask.all():
                self._drop(key)
            else:
                self._put(key, segment.filter(~mask))
        return pl.concat(removed) if removed else pl.DataFrame(schema=self.schema)

    def purge_below(self, column: str, limit: int) -> int:
        """Remove the rows whose integer (never null) in the column is below the limit; returns how many. If the rows
        ascend in the column then nothing is copied."""
        if not self._count:
            return 0
        frame = self.frame()
        values = frame.get_column(column)
        if column not in self._ascends:
            self._ascends[column] = values.is_sorted()
        before = self._count
        if not self._ascends[column]:
            self.keep(values >= limit)
            return before - self._count
        gone = left = int(np.searchsorted(values.to_numpy(), limit))
        if not gone:
            return 0
        for key, segment in list(self._segments.items()):
            if segment.height > left:
                if left:
                    self._put(key, segment.slice(left))
                break
            left -= segment.height
            self._drop(key)
        self._frame = frame.slice(gone)
        return gone

    def keep(self, mask: pl.Series) -> None:
        """Keep only the rows of `frame()` where the mask is true."""
        if mask.all():
            return
        parts: list[tuple[int, pl.Series]] = []
        start = 0
        for key, segment in self._segments.items():
            parts.append((key, mask.slice(start, segment.height)))
            start += segment.height
        torn = [key for key, part in parts if part.any() and not part.all()]
        if len(torn) > FEW_SEGMENTS and 2 * sum(self._segments[key].height for key in torn) > mask.len():
            # One pass over everything costs less than many over parts of it.
            self.replace(self.frame().filter(mask))
            return
        for key, part in parts:
            if not part.any():
                self._drop(key)
            elif not part.all():
                self._put(key, self._segments[key].filter(part))

    def replace(self, rows: pl.DataFrame) -> None:
        """Make these rows the whole content, as one segment."""
        self._ascends.clear()
        for key in list(self._segments):
            self._drop(key)
        if rows.height:
            rows = rows.select(self._names).rechunk()
            self._put(self._next, rows)
            self._next += 1
            self._frame = rows

    def frame(self) -> pl.DataFrame:
        """The whole content in order of arrival, not to be changed in place."""
        if self._recent and self._frame is not None and self._count <= RECHUNK_ROWS:
            # The new rows go to the end of a copy; joining all segments up again would take much longer.
            self._frame = self._frame.clone()
            for rows in self._recent:
                self._frame.extend(rows)
            self._recent = []
        if self._frame is None or self._recent:
            self._recent = []
            parts = list(self._segments.values())
            few = self._count <= RECHUNK_ROWS
            self._frame = pl.concat(parts, rechunk=few) if parts else pl.DataFrame(schema=self.schema)
        return self._frame

    def changes(self) -> Changes:
        """What was put and dropped since the last call."""
        taken, self._changes = self._changes, Changes()
        return taken

    def _goes_on(self, column: str, values: pl.Series) -> bool:
        """Whether values appended to an ascending column keep it so."""
        if not self._count:
            return values.is_sorted()
        last = next(reversed(self._segments.values())).item(-1, column)
        return bool(values.item(0) >= last) and values.is_sorted()

    def _put(self, key: int, segment: pl.DataFrame) -> None:
        if key in self._segments:
            self._count -= self._segments[key].height
        self._segments[key] = segment
        self._count += segment.height
        self._changes.put[key] = segment
        self._frame, self._recent = None, []

    def _drop(self, key: int) -> None:
        self._count -= self._segments[key].height
        del self._segments[key]
        self._changes.put.pop(key, None)
        self._changes.dropped.add(key)
        self._frame, self._recent = None, []
