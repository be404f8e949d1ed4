"""The window of an aggregate: the tuples of a partition that are in its frame."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from millstream.runtime.program.index import Row
from millstream.runtime.program.ordered import Indexed
from millstream.runtime.program.table import Table

Expire = Callable[..., Any] | None


class Inwindow(Table):
    """The tuples of a partition in the window of one aggregate: rows of arguments, by arrival number.

    The host calls `enter` and `leave`; an aggregate may delete rows, which then never expire.
    """

    __slots__ = ("_arrivals", "_stored", "gone")

    def __init__(self, indexes: Iterable[Indexed] = ()) -> None:
        super().__init__(indexes)
        self._arrivals: deque[tuple[int, int]] = deque()
        """Number and place of each tuple in the window, and of deleted ones that have not been dropped yet."""
        self._stored = -1
        """The highest number that a store has."""
        self.gone: list[int] = []
        """The numbers that a store has and the window no longer."""

    def enter(self, number: int, place: int, row: Row) -> None:
        """Add a tuple; its place in the frame is its time, or its arrival number in the partition."""
        arrivals = self._arrivals
        self.rows[number] = row
        arrivals.append((number, place))
        for index in self.indexes:
            index.add(number, row)
        if len(arrivals) > 2 * len(self.rows) + 16:
            self._compact()

    def _compact(self) -> None:
        """Forget the arrivals of deleted tuples."""
        held = [*self.arrivals()]
        self._arrivals.clear()
        self._arrivals.extend(held)

    def first(self) -> tuple[int, int] | None:
        """The number and the place of the oldest tuple; None if the window is empty."""
        arrivals, rows = self._arrivals, self.rows
        while arrivals:
            if arrivals[0][0] in rows:
                return arrivals[0]
            arrivals.popleft()
        return None

    def drain(self, bound: int, expire: Expire) -> None:
        """Remove the tuples whose places are below the bound, the oldest first; call `expire` with each before."""
        arrivals, rows, indexes = self._arrivals, self.rows, self.indexes
        while arrivals and arrivals[0][1] < bound:
            number = arrivals[0][0]
            row = rows.get(number)
            if row is None:  # the aggregate has deleted it
                arrivals.popleft()
                continue
            if expire is not None:
                expire(*row)
                if number not in rows:
                    continue
            arrivals.popleft()
            del rows[number]
            for index in indexes:
                index.remove(number, row)
            if number <= self._stored:
                self.gone.append(number)

    def slide(
        self, size: int, tuples: Iterable[tuple[int, int, Row]], iterate: Callable[..., Any], expire: Expire
    ) -> list[Any]:
        """Add tuples by number and place, each after the window has been drained of those that are more than `size`
        before it; return what `iterate` returns for each."""
        arrivals, rows, indexes, found = self._arrivals, self.rows, self.indexes, []
        for number, place, row in tuples:
            if arrivals and arrivals[0][1] < place - size:
                self.drain(place - size, expire)
            rows[number] = row
            arrivals.append((number, place))
            for index in indexes:
                index.add(number, row)
            if len(arrivals) > 2 * len(rows) + 16:
                self._compact()
            found.append(iterate(*row))
        return found

    def oldest(self) -> Row | None:
        """The oldest tuple; None if the window is empty."""
        first = self.first()
        return None if first is None else self.rows[first[0]]

    def arrivals(self) -> Iterator[tuple[int, int]]:
        """Number and place of each tuple in the window, the oldest first."""
        return (pair for pair in self._arrivals if pair[0] in self.rows)

    def shared(self, indexes: Iterable[Indexed]) -> Inwindow:
        """The same tuples, with indexes of its own, for an aggregate that only reads them."""
        view = Inwindow(indexes)
        self.indexes += view.indexes
        view.rows, view._arrivals = self.rows, self._arrivals
        return view

    def leave(self, number: int) -> None:
        """Remove an expired tuple, unless the aggregate has deleted it."""
        if number in self.rows:
            self.remove(number)

    def remove(self, number: int) -> None:
        super().remove(number)
        if number <= self._stored:
            self.gone.append(number)

    def clear(self) -> None:
        self.gone += [number for number in self.rows if number <= self._stored]
        super().clear()
        self._arrivals.clear()

    # --- a store --------------------------------------------------------------------------------------------------

    def unstored(self) -> list[tuple[int, int, Row]]:
        """Number, place and values of the tuples that a store does not have yet; they count as stored from now on."""
        found = []
        for number, place in reversed(self._arrivals):
            if number <= self._stored:
                break
            if number in self.rows:
                found.append((number, place, self.rows[number]))
        self._stored = max(self._stored, next(reversed(self.rows), -1))
        return found[::-1]

    def restore(self, number: int, place: int, row: Row) -> None:
        """Add a tuple that a store has."""
        self.enter(number, place, row)
        self._stored = number
