"""Calls over the tuples of a finite frame, which they may share: the members of a `Framed` evaluation.

| member | a tuple enters | a tuple leaves | results |
|---|---|---|---|
| `Maintained` | INITIALIZE or ITERATE of the window version | EXPIRE | those of the last tuple |
| `Recomputed` | | | the base version over the whole frame |
| `Paned` | is added to its pane | its pane is computed again | the window version over the base version of each pane |

Panes are slots of time. A frame ends with a tuple anywhere in a slot, so it may begin inside of a pane: the tuples are
held, but each is read about twice, however many frames it is in. A pane of rows is one value (`evaluation.Panes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from millstream.runtime.over.row_aggregate import (
    NO_ROWS,
    Factory,
    Inwindow,
    Row,
    RowAggregate,
    Rows,
    Versions,
    quiet_expiry,
    rows_of,
)

Pick = Callable[[Row], Row]


class Instance:
    """An aggregate, and whether it has taken its first tuple. `inwindow`: that of a window version."""

    __slots__ = ("_factory", "_inwindow", "aggregate", "started")

    aggregate: RowAggregate

    def __init__(self, factory: Factory, inwindow: Inwindow | None = None) -> None:
        self._factory, self._inwindow = factory, inwindow
        self.reset()

    def reset(self) -> None:
        self.aggregate = self._factory()
        if self._inwindow is not None:
            self.aggregate.inwindow = self._inwindow
        self.started = False

    def take(self, arguments: Row) -> Rows:
        if self.started:
            return self.aggregate.iterate(*arguments)
        self.started = True
        return self.aggregate.initialize(*arguments)

    def save(self) -> Any:
        return self.aggregate.save() if self.started else None

    def load(self, saved: Any) -> None:
        self.started = saved is not None
        if self.started:
            self.aggregate.load(saved)


class Member(ABC):
    """One call. `pick` takes its arguments from a tuple of the frame; None: they are the tuple."""

    def __init__(self, window: Inwindow, pick: Pick | None) -> None:
        self.window, self._pick = window, pick

    def enter(self, number: int, place: int, row: Row) -> None:  # noqa: B027 - some compute everything later
        """Take a tuple, which has entered the window."""

    def leave(self, number: int, place: int, row: Row) -> Rows:  # noqa: ARG002
        """Let a tuple leave, which is still in the window; return the rows of its expiry."""
        return NO_ROWS

    def gone(self, number: int, place: int, row: Row) -> None:
        """Let a tuple leave; the rows of its expiry are not used."""
        self.leave(number, place, row)

    @abstractmethod
    def left(self, found: Rows) -> Rows:
        """The results on expiry, once the tuple has left: `found` are those of `leave`."""

    @abstractmethod
    def results(self) -> Rows:
        """The results of the last tuple that has entered."""

    def save(self) -> Any:
        return None

    def load(self, saved: Any) -> None:  # noqa: B027
        pass


class Maintained(Member):
    """The window version. `slotted`: results may be asked for after a restart."""

    def __init__(
        self, factory: Factory, window: Inwindow, own: Inwindow, pick: Pick | None, *, slotted: bool = False
    ) -> None:
        super().__init__(window, pick)
        self.instance, self._slotted = Instance(factory, own), slotted
        self._found = NO_ROWS

    def enter(self, number: int, place: int, row: Row) -> None:  # noqa: ARG002
        self._found = self.instance.take(row if self._pick is None else self._pick(row))

    def leave(self, number: int, place: int, row: Row) -> Rows:  # noqa: ARG002
        return self.instance.aggregate.expire(*(row if self._pick is None else self._pick(row)))

    def gone(self, number: int, place: int, row: Row) -> None:  # noqa: ARG002
        quiet_expiry(self.instance.aggregate)(*(row if self._pick is None else self._pick(row)))

    def left(self, found: Rows) -> Rows:
        result = getattr(self.instance.aggregate, "result", None)  # of an aggregate in Python
        return found if result is None or not self.window.rows else [*found, *result()]

    def results(self) -> Rows:
        return self._found

    def save(self) -> Any:
        return self.instance.save(), list(self._found) if self._slotted else None

    def load(self, saved: Any) -> None:
        state, found = saved
        self.instance.load(state)
        self._found = rows_of(found)


class Recomputed(Member):
    """The base version over the whole frame: the results of the frame's last tuple, and those of TERMINATE."""

    def __init__(self, factory: Factory, window: Inwindow, pick: Pick | None) -> None:
        super().__init__(window, pick)
        self._factory = factory

    def left(self, found: Rows) -> Rows:  # noqa: ARG002
        return self.results()

    def results(self) -> Rows:
        return self._over(self._picked(self.window.rows.values()))

    def _picked(self, rows: Iterable[Row]) -> Iterable[Row]:
        return rows if self._pick is None else map(self._pick, rows)

    def _over(self, rows: Iterable[Row]) -> Rows:
        """The base version over these tuples."""
        instance, found = Instance(self._factory), NO_ROWS
        if (whole := getattr(instance.aggregate, "whole", None)) is not None:
            every = [*rows]
            return whole(every) if every else NO_ROWS
        for row in rows:
            found = instance.take(row)
        return [*found, *instance.aggregate.terminate()] if instance.started else NO_ROWS


class Pane:
    """The numbers of the tuples of a slot, of which the first `gone` have left; `found`: the results, if known."""

    __slots__ = ("found", "gone", "numbers")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.gone = 0
        self.found: Rows | None = None


class Paned(Recomputed):
    """An ALGEBRAIC aggregate over slots of time of this length."""

    def __init__(self, versions: Versions, window: Inwindow, pick: Pick | None, length: int) -> None:
        assert versions.base is not None and versions.window is not None
        super().__init__(versions.base, window, pick)
        self._outer, self._indexes, self._length = versions.window, versions.indexes, length
        self._panes: dict[int, Pane] | None = None
        """By slot, in the order of time; None: not yet made of the tuples of the window."""

    def _all(self) -> dict[int, Pane]:
        if self._panes is None:
            self._panes = {}
            for number, place in self.window.arrivals():
                self._panes.setdefault(place // self._length, Pane()).numbers.append(number)
        return self._panes

    def enter(self, number: int, place: int, row: Row) -> None:  # noqa: ARG002
        if self._panes is None:
            self._all()
            return
        pane = self._panes.setdefault(place // self._length, Pane())
        pane.numbers.append(number)
        pane.found = None

    def leave(self, number: int, place: int, row: Row) -> Rows:  # noqa: ARG002
        panes = self._all()
        pane = panes[place // self._length]
        pane.gone, pane.found = pane.gone + 1, None
        if pane.gone == len(pane.numbers):
            del panes[place // self._length]
        return NO_ROWS

    def results(self) -> Rows:
        panes = Inwindow(self._indexes)
        outer, found = Instance(self._outer, panes), NO_ROWS
        for place, row in enumerate(row for pane in self._all().values() for row in self._of(pane)):
            panes.enter(place, place, row)
            found = outer.take(row)
        return found

    def _of(self, pane: Pane) -> Rows:
        if pane.found is None:
            rows = self.window.rows
            pane.found = self._over(self._picked(rows[number] for number in pane.numbers[pane.gone :]))
        return pane.found
