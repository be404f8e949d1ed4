"""One side of a symmetric join: its stored tuples, what closes them, and its punctuations that wait.

| | |
|---|---|
| stored | tuples that a later tuple of the other side may still join, under the output's column names |
| not stored | a NULL key; out of its window already; matched by a translated punctuation of the other side |
| removed | what new translated punctuations match |
| removed | what is out of its window: `ts + W <` the other side's bound, or not among the last n |
| removed | everything, once the other side has ended |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.punctuation import Punctuations, PunctuationSet
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.runtime.join_kernel import Half, JoinWindow
from millstream.runtime.propagation import NO_PUNCTUATIONS, Pending
from millstream.runtime.state import StateTable


class JoinSide:
    def __init__(
        self, schema: Mapping[str, pl.DataType], window: JoinWindow, keys: Sequence[str], seq: str | None
    ) -> None:
        self.table = StateTable(schema)
        self.count = 0
        """How many tuples have come, stored or not."""
        self._window, self._keys, self._seq = window, list(dict.fromkeys(keys)), seq
        self._closed = PunctuationSet()
        self._any_closed = False
        self._pending = Pending()
        self._told = self._shrunk = False

    @property
    def rows(self) -> pl.DataFrame:
        return self.table.frame()

    @property
    def freed(self) -> bool:
        """Whether punctuation may have become free since the last release."""
        return len(self._pending) > 0 and (self._told or self._shrunk)

    def close(self, translated: Punctuations) -> None:
        """Purge what the other side will not join any more."""
        if len(translated):
            fresh = self._closed.add(translated)
            self._any_closed = True
            if len(fresh) and len(self.table):
                self._keep(~fresh.match(self.rows))

    def expire(self, bound: int) -> None:
        """Purge what is out of its window, given the other side's bound on time."""
        if not len(self.table):
            return
        before = len(self.table)
        if bound == FOREVER:
            self.table.replace(self.rows.clear())
        elif self._window.rows is not None and self._seq is not None:
            self.table.purge_below(self._seq, self.count - self._window.rows + 1)
        elif self._window.range is not None and bound > NEVER:
            self.table.purge_below(TS, bound - self._window.range)
        self._shrunk = self._shrunk or len(self.table) < before

    def insert(self, half: Half, bound: int) -> None:
        """Store the new tuples that a later tuple of the other side may still join; nothing has been purged since the
        step began."""
        if half.new is None or bound == FOREVER:
            return
        rows = self._lasting(half.new, bound)
        if rows.height and any(rows.get_column(key).null_count() for key in self._keys):
            rows = rows.drop_nulls(self._keys)
        if rows.height and self._any_closed:
            gone = self._closed.match(rows)
            if gone.any():
                rows = rows.filter(~gone)
        self.table.append(rows, half.joined if rows is half.new else None)

    def _lasting(self, rows: pl.DataFrame, bound: int) -> pl.DataFrame:
        """Those that are still in their window."""
        if self._window.rows is not None:
            return rows.tail(self._window.rows)
        if self._window.range is None or bound == NEVER:
            return rows
        times, limit = rows.get_column(TS), bound - self._window.range
        numbers = times.to_numpy()
        if int(numbers.min()) >= limit:
            return rows
        if times.is_sorted():
            return rows.slice(int(np.searchsorted(numbers, limit)))
        return rows.filter(times >= limit)

    def promise(self, punctuations: Punctuations) -> None:
        """Take punctuation of this side, to be put out when nothing stored matches it."""
        self._pending.add(punctuations)
        self._told = True

    def release(self) -> Punctuations:
        """The punctuations of this side that may go out now."""
        free = self._pending.release(self.rows, shrunk=self._shrunk) if self.freed else NO_PUNCTUATIONS
        self._told = self._shrunk = False
        return free

    def _keep(self, mask: pl.Series) -> None:
        if not mask.all():
            self.table.keep(mask)
            self._shrunk = True

    def to_value(self) -> dict[str, Any]:
        return {"count": self.count, "closed": self._closed.to_value(), "pending": self._pending.to_value()}

    def restore(self, value: Mapping[str, Any]) -> None:
        self.count = value["count"]
        self._closed = PunctuationSet.from_value(value["closed"])
        self._any_closed = True
        self._pending = Pending.from_value(value["pending"])
        self._told = True
