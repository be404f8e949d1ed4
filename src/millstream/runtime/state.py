"""Operator state as immutable segments: appends add one, purges drop or rewrite some.

What a checkpoint has to write is what changed, not what is held: `changes()` names the segments put and dropped since
the last call. `frame()` is the whole content in order of arrival, cached until something changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

COMPACT_SEGMENTS = 32
"""Merge the small segments when there are more than this many."""


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

    def __len__(self) -> int:
        return sum(segment.height for segment in self._segments.values())

    def append(self, rows: pl.DataFrame) -> None:
        """Add rows (columns in any order)."""
        if rows.height == 0:
            return
        self._put(self._next, rows.select(list(self.schema)))
        self._next += 1
        if len(self._segments) > COMPACT_SEGMENTS:
            self.replace(self.frame())

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

    def keep(self, mask: pl.Series) -> None:
        """Keep only the rows of `frame()` where the mask is true."""
        if not mask.all():
            start = 0
            for key, segment in list(self._segments.items()):
                part = mask.slice(start, segment.height)
                start += segment.height
                if not part.any():
                    self._drop(key)
                elif not part.all():
                    self._put(key, segment.filter(part))

    def replace(self, rows: pl.DataFrame) -> None:
        """Make these rows the whole content, as one segment."""
        for key in list(self._segments):
            self._drop(key)
        if rows.height:
            self._put(self._next, rows.select(list(self.schema)))
            self._next += 1

    def frame(self) -> pl.DataFrame:
        if self._frame is None:
            parts = list(self._segments.values())
            self._frame = pl.concat(parts) if parts else pl.DataFrame(schema=self.schema)
        return self._frame

    def changes(self) -> Changes:
        """What was put and dropped since the last call."""
        taken, self._changes = self._changes, Changes()
        return taken

    def _put(self, key: int, segment: pl.DataFrame) -> None:
        self._segments[key] = segment
        self._changes.put[key] = segment
        self._frame = None

    def _drop(self, key: int) -> None:
        del self._segments[key]
        self._changes.put.pop(key, None)
        self._changes.dropped.add(key)
        self._frame = None
