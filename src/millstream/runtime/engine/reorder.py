"""The reorder buffer of one unordered input of a merging operator.

Rows wait here until the input's register promises that no older row will arrive, and leave in timestamp order.
Punctuations wait behind the rows that match them: an operator must see all of these first.

An element that keeps its position waits behind every row that arrived before it. The order of time takes precedence: a
row that arrived after the element leaves before it only if it is older than a row that arrived before the element.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.algebra.values import value
from millstream.runtime.operator.frames import stack
from millstream.runtime.operator.time_order import by_time


@value("waiting")
class Waiting(NamedTuple):
    """A waiting element, with the register's value before it. An element that keeps its position waits for the rows
    older than `after` and for the first `ties` rows with that timestamp."""

    register: int
    element: Element
    after: int = NEVER
    ties: int = 0


class Reorder:
    __slots__ = ("_parts", "_placed", "lowest", "pending", "rows")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self.rows = 0
        self.lowest = FOREVER
        self.pending: deque[Waiting] = deque()
        self._placed = 0
        """Number of pending elements that keep their position."""

    def add(self, page: pl.DataFrame) -> None:
        self._parts.append(page)
        self.rows += page.height
        lowest = page.get_column(TS).min()
        assert isinstance(lowest, int)
        self.lowest = min(self.lowest, lowest)

    def wait(self, register: int, element: Element) -> None:
        """Hold an element behind the rows held; `register` is the input's register before it."""
        held = self.frame() if element.keeps_position else None
        if held is None:
            self.extend([Waiting(register, element)])
        else:
            times = held.get_column(TS).to_numpy()
            self.extend([Waiting(register, element, int(times[-1]), _last(times))])

    def extend(self, waiting: Iterable[Waiting]) -> None:
        for each in waiting:
            self.pending.append(each)
            self._placed += each.element.keeps_position

    def frame(self) -> pl.DataFrame | None:
        """Return all rows held, oldest first, equal timestamps in order of arrival."""
        if not self._parts:
            return None
        if len(self._parts) > 1 or not self._parts[0].get_column(TS).is_sorted():
            self._parts = [by_time(stack(self._parts))]
        return self._parts[0]

    def release(self, limit: int) -> pl.DataFrame | None:
        """Take the rows that are not later than the limit, oldest first, up to an element that keeps its position."""
        held = self.frame() if self.lowest <= limit else None
        if held is None:
            return None
        times = held.get_column(TS).to_numpy()
        count = int(times.searchsorted(limit, side="right"))
        if self._placed:
            count = self._pass(times, count)
            if not count:
                return None
        rest = held.slice(count)
        self._parts = [rest] if rest.height else []
        self.rows = rest.height
        self.lowest = int(times[count]) if rest.height else FOREVER
        return held.slice(0, count)

    def _pass(self, times: npt.NDArray[np.int64], count: int) -> int:
        """Return how many of the first `count` rows precede the first element that keeps its position; count them as
        gone in the elements that wait for them."""
        first = next(each for each in self.pending if each.element.keeps_position)
        count = min(count, int(times.searchsorted(first.after)) + first.ties)
        if count:
            latest, gone = int(times[count - 1]), _last(times[:count])
            left = [each._replace(ties=each.ties - gone) if each.after == latest else each for each in self.pending]
            self.pending = deque(left)
        return count

    def time_limit(self) -> int:
        """Return the time that the operator may know: the register before the first pending element that keeps its
        position. Punctuations may follow the time that they imply."""
        if not self._placed:
            return FOREVER
        return next(each.register for each in self.pending if each.element.keeps_position)

    def pop_element(self) -> Element:
        """Take the first pending element."""
        element = self.pending.popleft().element
        self._placed -= element.keeps_position
        return element

    def element_ready(self) -> bool:
        """Return whether the first pending element may be taken: no row held matches its punctuations, or no row held
        precedes it if it keeps its position."""
        if not self.pending:
            return False
        _, first, after, ties = self.pending[0]
        if first.keeps_position:
            return self.lowest > after or (self.lowest == after and not ties)
        assert isinstance(first, Punctuations)
        if first.progress > self.lowest:
            return False
        held = self.frame() if len(first) else None
        return held is None or not first.match(held).any()


def _last(times: npt.NDArray[np.int64]) -> int:
    """Return the number of rows with the highest timestamp."""
    return len(times) - int(times.searchsorted(times[-1]))
