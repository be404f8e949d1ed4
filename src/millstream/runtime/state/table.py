"""Operator state as immutable segments: appends add one, purges drop or thin out some, and small ones are merged.

A checkpoint writes what changed, not what is held: `changes()` returns the segments put and dropped and the rows that
died since the last call; `restore()` rebuilds a table from a store. `frame()` is the whole content in order of arrival,
cached until the table changes.

| | written to a store |
|---|---|
| append | the new rows |
| purge, scattered or from the front | four bytes a row that dies |
| a segment loses more than half of its rows | the rest of it: no more rows than have died |
| more than 32 segments | some adjacent ones, merged into one at least twice as large as the largest of them |
| replace | everything |

So a row is written about log(n) times over its life. Changes are tracked only after the first call of `track()`,
`changes()` or `restore()`: without a store they cost nothing. The rows held at that call count as put.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.runtime.operator.frames import ONE_CHUNK_ROWS, pick, stack, where
from millstream.runtime.state.segments import Changes, Journal, Places, to_merge

__all__ = ["Changes", "StateTable"]

COMPACT_SEGMENTS = 32
"""Merge some segments when there are more than this many."""
PAGE_ROWS = 1 << 13
"""Up to this many rows, filtering them all at once is faster than filtering two segments one by one."""
FEW_ROWS = 1 << 10
"""Up to this many rows, writing them all to a store is faster than calling it for many segments."""


class StateTable:
    """A bag of rows in insertion order."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self.schema = dict(schema)
        self.empty = pl.DataFrame(schema=self.schema)
        self._segments: dict[int, pl.DataFrame] = {}
        """The rows alive, in the order of keys."""
        self._next = 0
        self._journal: Journal | None = None
        self._frame: pl.DataFrame | None = None
        self._recent: list[pl.DataFrame] = []
        """Rows appended since `_frame` was built."""
        self._names = list(self.schema)
        self._count = 0
        self._ascends: dict[str, bool] = {}
        """By column: true if `frame()` ascends in it, false if not."""

    def __len__(self) -> int:
        return self._count

    def size(self) -> int:
        """Return the approximate size in bytes. Text that segments share counts in each of them."""
        return sum(int(segment.estimated_size()) for segment in self._segments.values())

    def append(self, rows: pl.DataFrame, whole: pl.DataFrame | None = None) -> None:
        """Add rows (columns in any order). `whole` is the content afterwards, if the caller has it at hand."""
        if rows.height == 0:
            return
        for column, ascends in self._ascends.items():
            self._ascends[column] = ascends and self._still_ascends(column, rows.get_column(column))
        rows = self._in_order(rows)
        self._add(rows)
        if whole is not None:
            self._frame, self._recent = whole, []
        elif self._frame is not None:
            self._recent.append(rows)
        if len(self._segments) > COMPACT_SEGMENTS:
            self._compact()

    def purge_below(self, column: str, limit: int) -> int:
        """Remove the rows whose integer (never null) in the column is below the limit; return their number. If the rows
        ascend in the column, nothing is copied and the rows that stay are not read."""
        before = self._count
        if not before:
            return 0
        if column not in self._ascends:
            self._ascends[column] = self.frame().get_column(column).is_sorted()
        if not self._ascends[column]:
            self.keep(self.frame().get_column(column) >= limit)
            return before - self._count
        frame, recent = self._frame, self._recent
        for key, segment in list(self._segments.items()):
            values = segment.get_column(column).to_numpy()
            if values[-1] >= limit:
                if values[0] < limit:
                    self._cut(key, int(np.searchsorted(values, limit)))
                break
            self._drop(key)
        gone = before - self._count
        if frame is not None and gone <= frame.height:
            self._frame, self._recent = frame.slice(gone) if gone else frame, recent
        return gone

    def take_first(self, count: int) -> pl.DataFrame:
        """Remove the first `count` rows and return them. Nothing is copied but those, and the rows that stay are not
        read."""
        frame, recent = self._frame, self._recent
        taken: list[pl.DataFrame] = []
        left = count
        for key, segment in list(self._segments.items()):
            if left <= 0:
                break
            taken.append(segment.head(left))
            if segment.height <= left:
                self._drop(key)
            else:
                self._cut(key, left)
            left -= taken[-1].height
        if frame is not None and count <= frame.height:
            self._frame, self._recent = frame.slice(count), recent
        return stack(taken) if taken else self.empty

    def keep(self, mask: pl.Series) -> None:
        """Keep only the rows of `frame()` where the mask is true."""
        if mask.null_count():
            mask = mask.fill_null(False)
        if mask.all():
            return
        kept = mask.to_numpy()
        torn: dict[int, Mask] = {}
        empty: list[int] = []
        start = 0
        for key, segment in self._segments.items():
            part = kept[start : start + segment.height]
            start += segment.height
            count = np.count_nonzero(part)
            if count == 0:
                empty.append(key)
            elif count < segment.height:
                torn[key] = part
        mostly = self._count <= PAGE_ROWS or 2 * sum(map(len, torn.values())) > self._count
        at_once = len(torn) > 1 and mostly
        if at_once and (self._journal is None or self._count <= FEW_ROWS):
            known = self._ascends.copy()
            self.replace(where(self.frame(), mask))
            self._ascends = known
            return
        whole = where(self.frame(), mask) if at_once else None
        for key in empty:
            self._drop(key)
        if whole is None:
            for key, part in torn.items():
                self._tear(key, part)
        else:
            self._share(whole, torn)

    def replace(self, rows: pl.DataFrame) -> None:
        """Replace the whole content by these rows, as one segment."""
        self._ascends.clear()
        for key in list(self._segments):
            self._drop(key)
        if rows.height:
            rows = self._in_order(rows).rechunk()
            self._add(rows)
            self._frame = rows

    def shrink(self) -> None:
        """Release the text of dead rows, whose memory the rows alive share."""
        texts = [name for name, dtype in self.schema.items() if dtype == pl.String]
        if texts:
            own = [pl.concat_str(name, pl.lit("")).alias(name) for name in texts]
            self._segments = {key: segment.with_columns(own) for key, segment in self._segments.items()}
            self._frame, self._recent = None, []

    def frame(self) -> pl.DataFrame:
        """Return the whole content in order of arrival; it must not be changed in place."""
        if self._recent and self._frame is not None and self._count <= ONE_CHUNK_ROWS:
            # Appending the new rows to a copy is much faster than stacking all segments again.
            self._frame, self._recent = stack([self._frame, *self._recent]), []
        if self._frame is None or self._recent:
            self._recent = []
            parts = list(self._segments.values())
            self._frame = stack(parts) if parts else self.empty
        return self._frame

    # --- a store --------------------------------------------------------------------------------------------------

    def track(self) -> None:
        """Track changes from now on; the rows held already count as put."""
        if self._journal is None:
            self._journal = Journal()
            for key in self._segments:
                self._journal.put(key)

    def changes(self) -> Changes:
        """Return the changes since the last call, for a store (see `segments.py`)."""
        self.track()
        assert self._journal is not None
        return self._journal.take(self._segments)

    def restore(self, segments: Mapping[int, pl.DataFrame], gone: Mapping[int, Places]) -> None:
        """Load the content from a store: the segments as they were put, and all their tombstones, in any order."""
        self._segments, self._next, self._count = {}, max(segments, default=-1) + 1, 0
        self._frame, self._recent, self._ascends = None, [], {}
        self._journal = Journal()
        for key in sorted(segments):
            segment, dead, alive = self._in_order(self._whole(segments[key])), gone.get(key), None
            height = segment.height
            if dead is not None and len(dead):
                kept = np.ones(height, dtype=np.bool_)
                kept[dead] = False
                segment, alive = where(segment, kept), np.flatnonzero(kept).astype(np.uint32)
            self._journal.know(key, height, alive)
            self._segments[key] = segment
            self._count += segment.height
            if not segment.height:
                self._drop(key)

    # --- segments -------------------------------------------------------------------------------------------------

    def _whole(self, stored: pl.DataFrame) -> pl.DataFrame:
        """A stored segment with NULL in the columns that a later release has added."""
        return stored if stored.width == len(self._names) else pl.concat([self.empty, stored], how="diagonal")

    def _in_order(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows if rows.columns == self._names else pick(rows, self._names)

    def _still_ascends(self, column: str, values: pl.Series) -> bool:
        """Return whether an ascending column still ascends with these values appended."""
        if not self._count:
            return values.is_sorted()
        last = next(reversed(self._segments.values())).item(-1, column)
        return bool(values.item(0) >= last) and values.is_sorted()

    def _compact(self) -> None:
        """Merge some segments; the content stays the same."""
        if self._journal is None and self._count <= ONE_CHUNK_ROWS:
            # `frame()` has one chunk anyway.
            known = self._ascends.copy()
            self.replace(self.frame())
            self._ascends = known
            return
        first, end = to_merge([segment.height for segment in self._segments.values()])
        into, *others = list(self._segments)[first:end]
        self._segments[into] = pl.concat([self._segments[key] for key in (into, *others)], rechunk=True)
        for key in others:
            del self._segments[key]
        if self._journal is not None:
            self._journal.put(into)
            for key in others:
                self._journal.drop(key)
        if len(self._recent) > COMPACT_SEGMENTS:  # `frame()` is not in use
            self._frame, self._recent = None, []

    def _add(self, segment: pl.DataFrame) -> None:
        """Add a segment at the end; the caller updates `_frame`."""
        key, self._next = self._next, self._next + 1
        self._segments[key] = segment
        self._count += segment.height
        if self._journal is not None:
            self._journal.put(key)

    def _tear(self, key: int, kept: Mask) -> None:
        """Remove some rows of a segment, but not all."""
        if self._journal is not None:
            self._journal.tear(key, kept)
        self._shrink_to(key, where(self._segments[key], kept))

    def _share(self, whole: pl.DataFrame, torn: Mapping[int, Mask]) -> None:
        """Make every segment a slice of `whole`, the rows that are left; `torn` masks the rows kept, by segment."""
        start = 0
        for key, segment in self._segments.items():
            height = segment.height
            if key in torn:
                height = int(np.count_nonzero(torn[key]))
                if self._journal is not None:
                    self._journal.tear(key, torn[key])
            self._segments[key] = whole.slice(start, height)
            start += height
        self._count, self._frame, self._recent = start, whole, []

    def _cut(self, key: int, count: int) -> None:
        """Remove the first `count` rows of a segment, but not all."""
        if self._journal is not None:
            self._journal.cut(key, count)
        self._shrink_to(key, self._segments[key].slice(count))

    def _shrink_to(self, key: int, segment: pl.DataFrame) -> None:
        self._count -= self._segments[key].height - segment.height
        self._segments[key] = segment
        self._frame, self._recent = None, []

    def _drop(self, key: int) -> None:
        if self._journal is not None:
            self._journal.drop(key)
        self._count -= self._segments.pop(key).height
        self._frame, self._recent = None, []
