"""The reorder buffer of one unordered input of a merging operator.

Rows wait here until the input's register says that nothing older will come, and leave in timestamp order. Punctuations
wait behind the rows they speak of, for an operator may not hear "no more of these" before it has seen them all.
"""

from __future__ import annotations

from collections import deque

import polars as pl

from millstream.algebra.punctuation import Punctuations
from millstream.algebra.schema import FOREVER, TS
from millstream.runtime.frames import stack
from millstream.runtime.time_order import by_time


class Reorder:
    __slots__ = ("_parts", "lowest", "pending", "rows")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self.rows = 0
        self.lowest = FOREVER
        self.pending: deque[tuple[int, Punctuations]] = deque()
        """Punctuations that wait, each with what the register said before them."""

    def add(self, page: pl.DataFrame) -> None:
        self._parts.append(page)
        self.rows += page.height
        lowest = page.get_column(TS).min()
        assert isinstance(lowest, int)
        self.lowest = min(self.lowest, lowest)

    def frame(self) -> pl.DataFrame | None:
        """All rows held, oldest first, equal timestamps in order of arrival."""
        if not self._parts:
            return None
        if len(self._parts) > 1 or not self._parts[0].get_column(TS).is_sorted():
            self._parts = [by_time(stack(self._parts))]
        return self._parts[0]

    def release(self, limit: int) -> pl.DataFrame | None:
        """Take the rows that are not later than the limit, oldest first."""
        held = self.frame() if self.lowest <= limit else None
        if held is None:
            return None
        late = held.get_column(TS).to_numpy()
        count = int(late.searchsorted(limit, side="right"))
        rest = held.slice(count)
        self._parts = [rest] if rest.height else []
        self.rows = rest.height
        self.lowest = int(late[count]) if rest.height else FOREVER
        return held.slice(0, count)

    def told(self) -> int:
        """Up to where the operator may believe in time: not beyond punctuations that it has yet to hear."""
        return self.pending[0][0] if self.pending else FOREVER

    def tell(self) -> Punctuations:
        return self.pending.popleft()[1]

    def can_tell(self) -> bool:
        """Whether the oldest waiting punctuations speak of no row that is still held."""
        if not self.pending:
            return False
        _, oldest = self.pending[0]
        if oldest.progress > self.lowest:
            return False
        held = self.frame() if len(oldest) else None
        return held is None or not oldest.match(held).any()
