"""Finite frames of aggregates that take one tuple at a time: one window, which several calls may share.

Tuples leave before the next one enters, the oldest first: each call is told of it while the tuple is still in the
window. The window of several calls has the columns of all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product, starmap
from typing import Any

from millstream.algebra.frame import Frame
from millstream.runtime.over.members import Maintained, Member, Paned, Pick, Recomputed
from millstream.runtime.over.row_aggregate import NO_ROWS, Inwindow, Row, Rows, Versions, quiet_expiry, rows_of


class Evaluation(ABC):
    """The results of one call in one partition."""

    @abstractmethod
    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        """Take the next tuple and return its results. `number` identifies it, `arrival` is its number in the partition,
        from 0 on."""

    def take_all(self, numbers: Sequence[int], arrival: int, times: Sequence[int], rows: Sequence[Row]) -> list[Rows]:
        """Take the next tuples, of which `arrival` is the first in the partition, and return the results of each."""
        taken = zip(numbers, range(arrival, arrival + len(rows)), times, rows, strict=True)
        return [self.take(*each) for each in taken]

    def enter(self, number: int, arrival: int, time: int, arguments: Row) -> None:
        """Take the next tuple, whose results are not needed, or asked for later."""
        self.take(number, arrival, time, arguments)

    def results(self) -> Rows:
        """The results of the last tuple that has entered, whatever has left since then."""
        raise NotImplementedError

    def skip(self, arrival: int, time: int) -> None:  # noqa: B027 - most hold no frame
        """Let tuples leave the frame of the next tuple, which the aggregate does not take."""

    def advance(self, time: int) -> None:  # noqa: B027
        """Let tuples leave a frame of time that ends at `time`, whether or not a tuple of the partition comes."""

    def expire(self, number: int) -> Rows | None:
        """Let a tuple leave an active frame and return the results; None if the aggregate has deleted it."""
        raise NotImplementedError(number)

    @property
    def windows(self) -> list[Inwindow]:
        """The windows that hold tuples."""
        return []

    @property
    def remembers(self) -> bool:
        """True if it keeps something beside the tuples of its windows."""
        return True

    @abstractmethod
    def save(self) -> Any:
        """What it holds beside the tuples of its windows, as values."""

    @abstractmethod
    def load(self, saved: Any) -> None: ...


def framed(calls: Sequence[tuple[Versions, Pick | None]], frame: Frame) -> Framed:
    """The evaluation of calls over one window."""
    alone = len(calls) == 1
    window = Inwindow(calls[0][0].indexes if alone else ())
    members: list[Member] = []
    for versions, pick in calls:
        own = window if alone else window.shared(versions.indexes)
        members.append(_member(versions, frame, window, own, pick))
    kind = Alone if alone and isinstance(members[0], Maintained) else Framed
    return kind(frame, window, members, holds=any(versions.keeps_window for versions, _ in calls))


def _member(versions: Versions, frame: Frame, window: Inwindow, own: Inwindow, pick: Pick | None) -> Member:
    if versions.base is not None and (versions.window is None or frame.tumbles):
        return Recomputed(versions.base, window, pick)
    assert versions.window is not None
    if versions.base is not None and versions.algebraic and frame.slots is not None:
        return Paned(versions, window, pick, frame.slots.length)
    return Maintained(versions.window, window, own, pick, slotted=frame.slots is not None)


def combined(found: Sequence[Rows]) -> Rows:
    """The cross product of the results of several calls."""
    if len(found) == 1:
        return found[0]
    if not all(found):
        return NO_ROWS
    return [tuple(value for row in rows for value in row) for rows in product(*found)]


class Framed(Evaluation):
    """Unless the frame is active, tuples leave before the next one enters. `holds`: False if no call reads tuples."""

    def __init__(self, frame: Frame, window: Inwindow, members: list[Member], *, holds: bool) -> None:
        assert frame.size is not None
        self._rows, self._size, self._active = frame.rows, frame.size, frame.active
        self._slotted, self._holds = frame.slots is not None, holds
        self._window, self._members = window, members
        self._found: Rows | None = None
        """The results of the last tuple, if tuples have left since then."""

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        self.enter(number, arrival, time, arguments)
        return self.results()

    def enter(self, number: int, arrival: int, time: int, arguments: Row) -> None:
        self._found = None
        place = arrival if self._rows else time
        if self._holds:
            if not self._active:
                self._leave(place - self._size)
            self._window.enter(number, place, arguments)
        for member in self._members:
            member.enter(number, place, arguments)

    def results(self) -> Rows:
        if self._found is not None:
            return self._found
        return combined([member.results() for member in self._members])

    def skip(self, arrival: int, time: int) -> None:
        if not self._active:
            self._leave((arrival if self._rows else time) - self._size)

    def advance(self, time: int) -> None:
        if not self._rows and not self._active:
            if self._slotted and self._found is None and self._window.rows:
                self._found = self.results()
            self._leave(time - self._size)

    def _leave(self, bound: int) -> None:
        """Let the tuples below the bound leave."""
        window = self._window
        while (first := window.first()) is not None and first[1] < bound:
            number, place = first
            for member in self._members:
                member.gone(number, place, window.rows[number])
            window.leave(number)

    def expire(self, number: int) -> Rows | None:
        row = self._window.rows.get(number)
        if row is None:
            return None
        found = [member.leave(number, 0, row) for member in self._members]
        self._window.leave(number)
        return combined([member.left(rows) for member, rows in zip(self._members, found, strict=True)])

    @property
    def windows(self) -> list[Inwindow]:
        return [self._window] if self._holds else []

    @property
    def remembers(self) -> bool:
        return any(isinstance(member, Maintained) for member in self._members)

    def save(self) -> Any:
        return [member.save() for member in self._members], None if self._found is None else list(self._found)

    def load(self, saved: Any) -> None:
        states, found = saved
        for member, state in zip(self._members, states, strict=True):
            member.load(state)
        self._found = None if found is None else rows_of(found)


class Alone(Framed):
    """The most common frame, on a short path: that of one window version."""

    def __init__(self, frame: Frame, window: Inwindow, members: list[Member], *, holds: bool) -> None:
        super().__init__(frame, window, members, holds=holds)
        (self._member,) = members
        assert isinstance(self._member, Maintained)
        self._instance = self._member.instance
        self._expires = getattr(self._instance.aggregate, "EXPIRES", True)

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        if self._holds:
            place = arrival if self._rows else time
            if not self._active:
                self._leave(place - self._size)
            self._window.enter(number, place, arguments)
        return self._instance.take(arguments)

    def take_all(self, numbers: Sequence[int], arrival: int, times: Sequence[int], rows: Sequence[Row]) -> list[Rows]:
        if self._active:
            return super().take_all(numbers, arrival, times, rows)
        found: list[Rows] = []
        if not self._instance.started:
            found.append(self.take(numbers[0], arrival, times[0], rows[0]))
            numbers, arrival, times, rows = numbers[1:], arrival + 1, times[1:], rows[1:]
        iterate = self._instance.aggregate.iterate
        if not self._holds:
            found += starmap(iterate, rows)
            return found
        places = range(arrival, arrival + len(rows)) if self._rows else times
        found += self._window.slide(self._size, zip(numbers, places, rows, strict=True), iterate, self._expiry)
        return found

    @property
    def _expiry(self) -> Callable[..., Any] | None:
        return quiet_expiry(self._instance.aggregate) if self._expires else None

    def _leave(self, bound: int) -> None:
        self._window.drain(bound, self._expiry)
