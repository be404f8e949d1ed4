"""One side of a symmetric join: its stored tuples, the punctuation that closes them, and its own that waits.

| | |
|---|---|
| stored | tuples that a later tuple of the other side may still join, under the output's column names |
| not stored | tuples already out of their window; tuples that match a translated punctuation of the other side |
| neither probed nor stored | tuples with a NULL key: they only count in a ROWS window |
| neither probed nor stored | tuples that match an emitted one of the other side: no partner is stored or will arrive |
| purged | tuples that match new translated punctuations, when the join purges |
| purged | tuples for which the other side's time excludes partners (`time_limits`), at once |
| purged | tuples out of their window: `ts + W <` the other side's bound, or not among the last n |
| purged | all tuples, once the other side has ended |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.algebra.window import Window
from millstream.runtime.join.closed import ClosedKeys
from millstream.runtime.join.disk.side import DiskPart
from millstream.runtime.join.events.punctuation_index import Counted
from millstream.runtime.join.kernel import Half
from millstream.runtime.join.settings import IndexMode
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Pending
from millstream.runtime.state.table import StateTable


class JoinSide:
    def __init__(self, schema: Mapping[str, pl.DataType], window: Window, keys: Sequence[str], seq: str) -> None:
        self.table = StateTable(schema)
        self.count = 0
        """Number of tuples that have arrived, stored or not, if the join numbers them."""
        self.dropped = 0
        """Number of tuples that arrived after the punctuation on their key was emitted."""
        self._window, self._keys, self._seq = window, list(dict.fromkeys(keys)), seq
        self._closed = ClosedKeys()
        self._unused = self._timely = NO_PUNCTUATIONS
        self._pending: Pending | Counted = Pending()
        self._promised = self._shrunk = False
        self.on_leave: Callable[[pl.DataFrame], None] | None = None
        """Called with tuples, under the stored names, that leave the state or never enter it."""
        self.disk: DiskPart | None = None
        """Tuples for which there is no room in memory."""

    @property
    def rows(self) -> pl.DataFrame:
        return self.table.frame()

    # --- tuples -----------------------------------------------------------------------------------------------------

    def admit(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Return the new tuples without those that need neither probe nor be stored."""
        for key in self._keys:
            if rows.get_column(key).null_count():
                rows = self._only(rows, rows.get_column(key).is_not_null())
        if not rows.height:
            return None
        done = self._closed.done(rows)
        if done is None:
            return rows
        admitted = self._only(rows, ~done)
        self.dropped += rows.height - admitted.height
        return admitted if admitted.height else None

    def insert(self, half: Half, bound: int) -> None:
        """Store the new tuples that a later tuple of the other side may still join. Nothing has been purged since the
        step began."""
        if half.new is None:
            return
        if bound == FOREVER:
            self._reject(half.new)
            return
        rows = self._lasting(half.new, bound)
        if rows.height and self._closed:
            gone = self._closed.closed(rows)
            self._closed.forget()
            if gone.any():
                self._reject(where(rows, gone))
                rows = where(rows, ~gone)
        self.table.append(rows, half.joined if rows is half.new else None)
        if self.disk is not None:
            self.disk.stored(rows.height)

    def _lasting(self, rows: pl.DataFrame, bound: int) -> pl.DataFrame:
        """Return the new tuples that are still in their window, and reject the others."""
        if self._window.rows is not None:
            expired = rows.height - self._window.rows
        elif self._window.range is None or bound == NEVER:
            return rows
        else:
            times, limit = rows.get_column(TS), bound - self._window.range
            numbers = times.to_numpy()
            if int(numbers.min()) >= limit:
                return rows
            if not times.is_sorted():
                inside = times >= limit
                self._reject(where(rows, ~inside))
                return where(rows, inside)
            expired = int(np.searchsorted(numbers, limit))
        if expired <= 0:
            return rows
        self._reject(rows.slice(0, expired))
        return rows.slice(expired)

    def _only(self, rows: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
        """Return the new tuples for which the mask is true; the others leave."""
        if self.on_leave is not None:
            self._leave(where(rows, ~mask))
        return where(rows, mask)

    def _reject(self, rows: pl.DataFrame) -> None:
        """Let new tuples leave without being stored, except those that may have missed partners on disk."""
        self._leave(rows if self.disk is None else self.disk.owe_new(rows))

    def expire(self, bound: int) -> None:
        """Purge the tuples that are out of their window, given the other side's bound on time."""
        if not len(self.table):
            return
        held, before = self.rows if self._listened_to else None, len(self.table)
        column, limit = self.limit(bound)
        if bound == FOREVER:
            self.table.replace(self.rows.clear())
        elif column is not None:
            if self.disk is not None and self.disk.active:
                self.disk.arrived.keep(self.rows.get_column(column).to_numpy() >= limit)
            self.table.purge_below(column, limit)
        if len(self.table) < before:
            self._shrunk = True
            if held is not None:
                self.left(held if bound == FOREVER else _below(held, column or TS, limit, before - len(self.table)))

    def limit(self, bound: int) -> tuple[str | None, int]:
        """Return a column and a limit: tuples with a lower value are out of the window."""
        if self._window.rows is not None:
            return self._seq, self.count - self._window.rows + 1
        if self._window.range is not None and bound > NEVER:
            return TS, bound - self._window.range
        return None, NEVER

    # --- punctuation of the other side ------------------------------------------------------------------------------

    def close(self, translated: Punctuations) -> None:
        """Add translated punctuation of the other side. From now on matching tuples are not stored; stored ones stay
        until the next purge."""
        if len(translated):
            self._unused = Punctuations.concat([self._unused, self._close(translated)])

    def close_by_time(self, closed: Punctuations) -> None:
        """Add what the other side's time closes; stored tuples stay until `purge_by_time`, later in the step."""
        if len(closed):
            self._timely = self._close(closed)

    def _close(self, closed: Punctuations) -> Punctuations:
        """Add closed tuples; returns what is new."""
        fresh = self._closed.close(closed)
        if len(fresh) and self.disk is not None:
            self.disk.close(fresh)
        return fresh

    def finish(self, translated: Punctuations) -> None:
        """Add keys for which the other side stores no tuple and will receive none."""
        if len(translated):
            self._closed.finish(translated)

    def closes(self, punctuations: Punctuations) -> Mask:
        """Return a mask of the punctuations on tuples of this side that the other side has closed too."""
        return self._closed.covered(punctuations).to_numpy()

    @property
    def unused(self) -> bool:
        """True if some punctuation has not been used to purge yet."""
        return len(self._unused) > 0

    def purge(self) -> None:
        """Purge the tuples that punctuation has closed since the last purge."""
        unused, self._unused = self._unused, NO_PUNCTUATIONS
        self._purge(unused)

    def purge_by_time(self) -> bool:
        """Purge the tuples that time has closed in this step; returns whether it has closed any."""
        closed, self._timely = self._timely, NO_PUNCTUATIONS
        self._purge(closed)
        return len(closed) > 0

    def _purge(self, unused: Punctuations) -> None:
        if not len(unused) or not len(self.table):
            return
        self.drop(unused.match(self.rows).to_numpy())

    def drop(self, gone: Mask) -> None:
        """Purge stored tuples."""
        if not gone.any():
            return
        stays = pl.Series(~gone)
        self._shrunk = True
        listened = self._listened_to or (self.disk is not None and self.disk.active)
        rows = where(self.rows, gone) if listened else None
        if rows is not None and self.disk is not None:
            rows = self.disk.owe_stored(rows, ~gone)
        self.table.keep(stays)
        if rows is not None:
            self.left(rows)

    # --- tuples that leave ------------------------------------------------------------------------------------------

    @property
    def _listened_to(self) -> bool:
        return self.on_leave is not None or (isinstance(self._pending, Counted) and len(self._pending) > 0)

    def left(self, rows: pl.DataFrame) -> None:
        """Handle stored tuples that have left for good."""
        self._shrunk = True
        if isinstance(self._pending, Counted):
            self._pending.leave(rows)
        self._leave(rows)

    def _leave(self, rows: pl.DataFrame) -> None:
        if self.on_leave is not None and rows.height:
            self.on_leave(rows)

    # --- punctuation of this side -----------------------------------------------------------------------------------

    def promise(self, punctuations: Punctuations) -> None:
        """Add punctuation of this side, to be emitted when no stored tuple matches it."""
        self._pending.add(punctuations)
        self._promised = True

    @property
    def freed(self) -> bool:
        """True if punctuation may have become free since the last release."""
        return len(self._pending) > 0 and (self._promised or self._shrunk)

    @property
    def waiting(self) -> int:
        """Number of punctuations that have not been emitted yet."""
        return len(self._pending)

    def index_by(self, mode: IndexMode) -> None:
        """Switch to counting stored tuples (eager), or to matching them before each release (lazy)."""
        if isinstance(self._pending, Counted) == (mode == "eager"):
            return
        known = self._pending.to_value()
        self._pending = Counted() if mode == "eager" else Pending()
        self._pending.add(known)
        self.build_index()
        self._promised = True

    def build_index(self) -> None:
        """Count the stored tuples that match new punctuations; a lazy index has nothing to build."""
        if isinstance(self._pending, Counted):
            self._pending.build(self._everything())

    def release(self) -> Punctuations:
        """Remove and return the punctuations of this side that may be emitted now."""
        free = NO_PUNCTUATIONS
        if self.freed:
            if isinstance(self._pending, Counted):
                free = self._pending.release()
            else:
                free = self._pending.release(self._everything(), shrunk=self._shrunk)
        self._promised = self._shrunk = False
        return free

    def _everything(self) -> pl.DataFrame:
        """Stored tuples in memory and on disk; of those on disk, only the attributes that waiting punctuation restricts
        are read."""
        if self.disk is None or not self.disk.active:
            return self.rows
        return self.disk.with_memory(self._pending.attributes)

    # --- snapshots --------------------------------------------------------------------------------------------------

    def to_value(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "dropped": self.dropped,
            "closed": self._closed.to_value(),
            "unused": self._unused,
            "pending": self._pending.to_value(),
        }

    def restore(self, value: Mapping[str, Any]) -> None:
        """Restore the value of `to_value`; the table has been restored before."""
        self.count, self.dropped = value["count"], value["dropped"]
        self._closed = ClosedKeys.from_value(value["closed"])
        self._unused = value["unused"]
        self._pending = Counted() if isinstance(self._pending, Counted) else Pending()
        self._pending.add(value["pending"])
        self._promised = True


def _below(rows: pl.DataFrame, column: str, limit: int, count: int) -> pl.DataFrame:
    """Return the `count` rows whose value is below the limit; nothing is copied if they are the first ones."""
    out = rows.get_column(column).to_numpy() < limit
    return rows.slice(0, count) if out[:count].all() else where(rows, out)
