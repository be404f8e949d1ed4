"""One side of a symmetric join: its stored tuples, what closes them, and its punctuations that wait.

| | |
|---|---|
| stored | tuples that a later tuple of the other side may still join, under the output's column names |
| not stored | out of its window already; matched by a translated punctuation of the other side |
| not looked at | a NULL key: it only counts in a window of rows |
| not looked at | matched by one of the other side that is out: no partner is stored there, and none will come |
| removed | what new translated punctuations match, when the join purges |
| removed | what is out of its window: `ts + W <` the other side's bound, or not among the last n |
| removed | everything, once the other side has ended |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

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
    def __init__(self, schema: Mapping[str, pl.DataType], window: Window, keys: Sequence[str], seq: str | None) -> None:
        self.table = StateTable(schema)
        self.count = 0
        """How many tuples have come, stored or not."""
        self.dropped = 0
        """How many came after their key was put out, and were not looked at."""
        self._window, self._keys, self._seq = window, list(dict.fromkeys(keys)), seq
        self._closed = ClosedKeys()
        self._unused = NO_PUNCTUATIONS
        self._pending: Pending | Counted = Pending()
        self._told = self._shrunk = False
        self.released = NO_PUNCTUATIONS
        """What `release` has given last."""
        self.on_leave: Callable[[pl.DataFrame], None] | None = None
        """Hears of tuples, in the form in which they are stored, that leave the state or never enter it."""
        self.disk: DiskPart | None = None
        """Where tuples go for which there is no room in memory."""

    @property
    def rows(self) -> pl.DataFrame:
        return self.table.frame()

    # --- tuples -----------------------------------------------------------------------------------------------------

    def admit(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """The new tuples without those that need neither probe nor be stored."""
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
        """Store the new tuples that a later tuple of the other side may still join; nothing has been purged since the
        step began."""
        if half.new is None:
            return
        if bound == FOREVER:
            self._leave(self._unless_owed(half.new))
            return
        rows = self._lasting(half.new, bound)
        if rows.height and self._closed:
            gone = self._closed.closed(rows)
            self._closed.forget()
            if gone.any():
                self._leave(self._unless_owed(where(rows, gone)))
                rows = where(rows, ~gone)
        self.table.append(rows, half.joined if rows is half.new else None)
        if self.disk is not None:
            self.disk.stored(rows.height)

    def _lasting(self, rows: pl.DataFrame, bound: int) -> pl.DataFrame:
        """Those that are still in their window."""
        if self._window.rows is not None:
            return self._without(rows, rows.height - self._window.rows)
        if self._window.range is None or bound == NEVER:
            return rows
        times, limit = rows.get_column(TS), bound - self._window.range
        numbers = times.to_numpy()
        if int(numbers.min()) >= limit:
            return rows
        if times.is_sorted():
            return self._without(rows, int(np.searchsorted(numbers, limit)))
        inside = times >= limit
        self._leave(self._unless_owed(where(rows, ~inside)))
        return where(rows, inside)

    def _without(self, rows: pl.DataFrame, first: int) -> pl.DataFrame:
        """The new tuples without the first ones, which leave."""
        if first <= 0:
            return rows
        self._leave(self._unless_owed(rows.slice(0, first)))
        return rows.slice(first)

    def _only(self, rows: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
        """The new tuples for which the mask is true; the others leave."""
        if self.on_leave is not None:
            self._leave(where(rows, ~mask))
        return where(rows, mask)

    def _unless_owed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The new tuples without those that partners on disk still have to meet."""
        return rows if self.disk is None else self.disk.owe_new(rows)

    def expire(self, bound: int) -> None:
        """Purge what is out of its window, given the other side's bound on time."""
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
        """The column whose values below a limit are out of the window, and the limit."""
        if self._window.rows is not None and self._seq is not None:
            return self._seq, self.count - self._window.rows + 1
        if self._window.range is not None and bound > NEVER:
            return TS, bound - self._window.range
        return None, NEVER

    # --- punctuation of the other side ------------------------------------------------------------------------------

    def close(self, translated: Punctuations) -> None:
        """Note what the other side will not join any more. New tuples are not stored from now on, stored ones are
        there until the next purge."""
        if len(translated):
            fresh = self._closed.close(translated)
            if len(fresh):
                self._unused = Punctuations.concat([self._unused, fresh])
                if self.disk is not None:
                    self.disk.close(fresh)

    def finish(self, translated: Punctuations) -> None:
        """Note for which keys the other side has nothing stored, and nothing will come."""
        if len(translated):
            self._closed.finish(translated)

    @property
    def unused(self) -> bool:
        """Whether some punctuation has not been used to purge yet."""
        return len(self._unused) > 0

    def purge(self) -> None:
        """Remove what punctuation has closed since the last time."""
        unused, self._unused = self._unused, NO_PUNCTUATIONS
        if not len(unused) or not len(self.table):
            return
        stays = ~unused.match(self.rows)
        if stays.all():
            return
        self._shrunk = True
        listened = self._listened_to or (self.disk is not None and self.disk.active)
        gone = where(self.rows, ~stays) if listened else None
        if gone is not None and self.disk is not None:
            gone = self.disk.owe_stored(gone, stays.to_numpy())
        self.table.keep(stays)
        if gone is not None:
            self.left(gone)

    # --- tuples that leave ------------------------------------------------------------------------------------------

    @property
    def _listened_to(self) -> bool:
        return self.on_leave is not None or (isinstance(self._pending, Counted) and len(self._pending) > 0)

    def left(self, rows: pl.DataFrame) -> None:
        """Stored tuples have left for good."""
        self._shrunk = True
        if isinstance(self._pending, Counted):
            self._pending.leave(rows)
        self._leave(rows)

    def _leave(self, rows: pl.DataFrame) -> None:
        if self.on_leave is not None and rows.height:
            self.on_leave(rows)

    # --- punctuation of this side -----------------------------------------------------------------------------------

    def promise(self, punctuations: Punctuations) -> None:
        """Take punctuation of this side, to be put out when nothing stored matches it."""
        self._pending.add(punctuations)
        self._told = True

    @property
    def freed(self) -> bool:
        """Whether punctuation may have become free since the last release."""
        return len(self._pending) > 0 and (self._told or self._shrunk)

    @property
    def waiting(self) -> int:
        """How many punctuations are not out yet."""
        return len(self._pending)

    def index_by(self, mode: IndexMode) -> None:
        """Count stored tuples from now on, or look at them when asked."""
        if isinstance(self._pending, Counted) == (mode == "eager"):
            return
        known = self._pending.to_value()
        self._pending = Counted() if mode == "eager" else Pending()
        self._pending.add(known)
        self.build_index()
        self._told = True

    def build_index(self) -> None:
        """Count the stored tuples for new punctuations; without counts, `release` looks at what is stored."""
        if isinstance(self._pending, Counted):
            self._pending.build(self._everything())

    @property
    def counts(self) -> Mapping[Any, int]:
        """For each waiting punctuation that is indexed, how many stored tuples match it."""
        return self._pending.counts if isinstance(self._pending, Counted) else {}

    def release(self) -> Punctuations:
        """The punctuations of this side that may go out now."""
        free = NO_PUNCTUATIONS
        if self.freed:
            if isinstance(self._pending, Counted):
                free = self._pending.release()
            else:
                free = self._pending.release(self._everything(), shrunk=self._shrunk)
        self._told = self._shrunk = False
        self.released = free
        return free

    def _everything(self) -> pl.DataFrame:
        """What is stored, wherever, as far as punctuation that waits speaks of it."""
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
        """Take back what `to_value` gave; the table has been restored before."""
        self.count, self.dropped = value["count"], value["dropped"]
        self._closed = ClosedKeys.from_value(value["closed"])
        self._unused = value["unused"]
        self._pending = Counted() if isinstance(self._pending, Counted) else Pending()
        self._pending.add(value["pending"])
        self._told = True


def _below(rows: pl.DataFrame, column: str, limit: int, count: int) -> pl.DataFrame:
    """The rows, so many, whose value is below the limit; nothing is copied if they come first."""
    out = rows.get_column(column).to_numpy() < limit
    return rows.slice(0, count) if out[:count].all() else where(rows, out)
