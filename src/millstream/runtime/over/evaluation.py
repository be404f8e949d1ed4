"""Calls of aggregates in one partition, evaluated tuple by tuple.

| frame | version | evaluation |
|---|---|---|
| none (`BASE`) | base | `Running`: results as the aggregate returns them |
| `UNBOUNDED` | base | `Running`: TERMINATE after each tuple |
| finite | window | `Framed`: EXPIRE for each tuple that leaves |
| finite | base alone | `Framed`: the base version over the whole frame, for each tuple whose results are emitted |
| slide ≥ window | base | `ROWS`: `Tumble`, restarted for each slot; `RANGE`: `Framed`, the whole frame once a slot |
| slide < window | both, ALGEBRAIC | base for each pane, window over the panes: `ROWS`: `Panes`; `RANGE`: `Framed` |
| other slides | | as without, and only the results of the last tuple of a slot are emitted |

An aggregate that lacks a version runs the other one: a window version whose tuples never leave is a base version.

With IGNORE NULLS a tuple with a NULL argument is not taken: it repeats the last result of its partition (`KnownOnly`).
It still has an arrival number, which counts in a frame of ROWS.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, starmap
from typing import Any

from millstream.algebra.frame import Frame
from millstream.runtime.over.framed import Evaluation, framed
from millstream.runtime.over.members import Instance
from millstream.runtime.over.row_aggregate import NO_ROWS, Inwindow, Row, Rows, Versions, rows_of


def evaluation(versions: Versions, frame: Frame) -> Evaluation:
    """The evaluation of one call over a frame. Slots of time are left to the caller, which asks for results."""
    if versions.ignore_nulls or not frame.rows or frame.slide is None or frame.size is None:
        return around(_plain(versions, frame), versions, frame)
    if frame.tumbles and versions.base is not None:
        return Tumble(versions, frame.size + 1, frame.slide)
    if versions.algebraic and versions.base is not None and not frame.tumbles:
        return Panes(versions, frame)
    return around(_plain(versions, frame), versions, frame)


def around(made: Evaluation, versions: Versions, frame: Frame) -> Evaluation:
    """The evaluation without NULLs, if the aggregate ignores them, and of the last tuple of each slot of rows."""
    if versions.ignore_nulls:
        made = KnownOnly(made, versions.width, repeats=not frame.base)
    return EveryNth(made, frame.slide) if frame.rows and frame.slide is not None else made


def _plain(versions: Versions, frame: Frame) -> Evaluation:
    if frame.size is None:
        return Running(versions, terminates=not frame.base, slotted=frame.slots is not None)
    return framed([(versions, None)], frame)


class Running(Evaluation):
    """All tuples so far. With `terminates`, TERMINATE runs after each tuple, also if its results are not needed: it may
    change the state. `slotted`: results may be asked for after a restart."""

    def __init__(self, versions: Versions, *, terminates: bool, slotted: bool = False) -> None:
        factory = versions.base or versions.window
        assert factory is not None
        self.instance = Instance(factory, Inwindow(versions.indexes) if versions.base is None else None)
        self._holds = versions.base is None and versions.keeps_window
        self._terminates, self._slotted = terminates and versions.base is not None, slotted
        self._found = NO_ROWS

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:  # noqa: ARG002
        instance = self.instance
        if self._holds:
            instance.aggregate.inwindow.enter(number, arrival, arguments)
        found = instance.take(arguments)
        self._found = [*found, *instance.aggregate.terminate()] if self._terminates else found
        return self._found

    def take_all(self, numbers: Sequence[int], arrival: int, times: Sequence[int], rows: Sequence[Row]) -> list[Rows]:
        if self._holds or self._terminates or not self.instance.started:
            return super().take_all(numbers, arrival, times, rows)
        found = [*starmap(self.instance.aggregate.iterate, rows)]
        self._found = found[-1]
        return found

    def results(self) -> Rows:
        return self._found

    @property
    def windows(self) -> list[Inwindow]:
        return [self.instance.aggregate.inwindow] if self._holds else []

    def save(self) -> Any:
        return self.instance.save(), list(self._found) if self._slotted else None

    def load(self, saved: Any) -> None:
        state, found = saved
        self.instance.load(state)
        self._found = rows_of(found)


class Tumble(Evaluation):
    """A frame of `width` rows at the end of each slot of `slide` rows. The rows before it are ignored, each slot starts
    anew, and only its last tuple has results."""

    def __init__(self, versions: Versions, width: int, slide: int) -> None:
        self._first, self._slide = slide - width, slide
        self._running = Running(versions, terminates=False)

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        place = arrival % self._slide
        if place < self._first:
            return NO_ROWS
        found = self._running.take(number, arrival, time, arguments)
        if place < self._slide - 1:
            return NO_ROWS
        instance = self._running.instance
        found = [*found, *instance.aggregate.terminate()]
        instance.reset()
        return found

    def save(self) -> Any:
        return self._running.save()

    def load(self, saved: Any) -> None:
        self._running.load(saved)


class Panes(Evaluation):
    """An ALGEBRAIC aggregate: the results of panes enter the frame of the window version."""

    def __init__(self, versions: Versions, frame: Frame) -> None:
        assert frame.size is not None and frame.slide is not None
        self._pane, self._slide = frame.pane, frame.slide
        self._inner = Tumble(versions, self._pane, self._pane)
        self._outer = framed([(versions, None)], Frame("ROWS", (frame.size + 1) // self._pane - 1))

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        found = NO_ROWS
        for row in self._inner.take(number, arrival, time, arguments):
            found = self._outer.take(number, arrival // self._pane, time, row)
        return found if (arrival + 1) % self._slide == 0 else NO_ROWS

    @property
    def windows(self) -> list[Inwindow]:
        return self._outer.windows

    def save(self) -> Any:
        return self._inner.save(), self._outer.save()

    def load(self, saved: Any) -> None:
        self._inner.load(saved[0])
        self._outer.load(saved[1])


class Around(Evaluation):
    """An evaluation that changes what another one emits."""

    def __init__(self, inner: Evaluation) -> None:
        self._inner = inner

    def skip(self, arrival: int, time: int) -> None:
        self._inner.skip(arrival, time)

    def advance(self, time: int) -> None:
        self._inner.advance(time)

    @property
    def windows(self) -> list[Inwindow]:
        return self._inner.windows

    def save(self) -> Any:
        return self._inner.save()

    def load(self, saved: Any) -> None:
        self._inner.load(saved)


class EveryNth(Around):
    """The results of every n-th tuple."""

    def __init__(self, inner: Evaluation, slide: int | None) -> None:
        super().__init__(inner)
        assert slide is not None
        self._slide = slide

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        if (arrival + 1) % self._slide == 0:
            return self._inner.take(number, arrival, time, arguments)
        self._inner.enter(number, arrival, time, arguments)
        return NO_ROWS


class KnownOnly(Around):
    """Tuples without NULLs; the others repeat the last results that were not empty. Before the first these are NULL."""

    def __init__(self, inner: Evaluation, width: int, *, repeats: bool) -> None:
        super().__init__(inner)
        self._repeats = repeats
        self._last: Rows = [(None,) * width] if repeats else NO_ROWS
        self._found: Rows | None = self._last
        """The results of the last tuple; None: they have not been asked for."""

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        self.enter(number, arrival, time, arguments)
        return self.results() if self._repeats or None not in arguments else NO_ROWS

    def take_all(self, numbers: Sequence[int], arrival: int, times: Sequence[int], rows: Sequence[Row]) -> list[Rows]:
        if None in chain.from_iterable(rows):
            return super().take_all(numbers, arrival, times, rows)
        self.results()
        found = self._inner.take_all(numbers, arrival, times, rows)
        self._found = found[-1]
        self._last = next(filter(None, reversed(found)), self._last)
        return found

    def enter(self, number: int, arrival: int, time: int, arguments: Row) -> None:
        if None in arguments:
            self.results()
            self._inner.skip(arrival, time)
            self._found = self._last
        else:
            self._inner.enter(number, arrival, time, arguments)
            self._found = None

    def results(self) -> Rows:
        if self._found is None:
            self._found = self._inner.results()
            self._last = self._found or self._last
        return self._found

    def expire(self, number: int) -> Rows | None:
        found = self._inner.expire(number)
        self._last = found or self._last
        return found

    def save(self) -> Any:
        return self._inner.save(), list(self.results()), list(self._last)

    def load(self, saved: Any) -> None:
        inner, found, last = saved
        self._inner.load(inner)
        self._found, self._last = rows_of(found), rows_of(last)
