"""One call of an aggregate in one partition, evaluated tuple by tuple.

| frame | version | evaluation |
|---|---|---|
| none (`BASE`) | base | `Running`: results as the aggregate returns them |
| `UNBOUNDED` | base | `Running`: TERMINATE after each tuple |
| finite | window | `Window` |
| finite | base alone | `Naive`: the base version over the whole frame, for each tuple |
| `ROWS`, slide ≥ window | base | `Tumble`: restarted for each slot |
| `ROWS`, slide < window | both, ALGEBRAIC | `Panes`: a tumble of the greatest common divisor, then the window version |
| other slides | | as without, and only the results of the last tuple of a slot are emitted |

An aggregate that lacks a version runs the other one: a window version whose tuples never leave is a base version.

With IGNORE NULLS a tuple with a NULL argument is not taken: it repeats the last result of its partition (`KnownOnly`).
It still has an arrival number, which counts in a frame of ROWS.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import gcd
from typing import Any

from millstream.algebra.frame import Frame
from millstream.runtime.over.row_aggregate import Factory, Inwindow, Row, RowAggregate, Versions

Rows = Sequence[Row]
NO_ROWS: Rows = ()


def evaluation(versions: Versions, frame: Frame) -> Evaluation:
    """The evaluation of a call over a frame. Slots of time are left to the caller."""
    if versions.ignore_nulls:
        made: Evaluation = KnownOnly(_plain(versions, frame), versions.width, repeats=not frame.base)
        return EveryNth(made, frame.slide) if frame.rows and frame.slide is not None else made
    if not frame.rows or frame.slide is None or frame.size is None:
        made = _plain(versions, frame)
        return EveryNth(made, frame.slide) if frame.rows and frame.slide is not None else made
    if frame.tumbles and versions.base is not None:
        return Tumble(versions, frame.size + 1, frame.slide)
    if versions.algebraic and versions.base is not None and not frame.tumbles:
        return Panes(versions, frame.size + 1, frame.slide)
    return EveryNth(_plain(versions, frame), frame.slide)


def _plain(versions: Versions, frame: Frame) -> Evaluation:
    if frame.size is None:
        return Running(versions, terminates=not frame.base)
    return Naive(versions, frame) if versions.window is None else Window(versions, frame)


class Evaluation(ABC):
    """The results of one call in one partition."""

    @abstractmethod
    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        """Take the next tuple and return its results. `number` identifies it, `arrival` is its number in the partition,
        from 0 on."""

    def enter(self, number: int, arrival: int, time: int, arguments: Row) -> None:
        """Take the next tuple, whose results are not needed."""
        self.take(number, arrival, time, arguments)

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

    @abstractmethod
    def save(self) -> Any:
        """What it holds beside the tuples of its windows, as values."""

    @abstractmethod
    def load(self, saved: Any) -> None: ...


class Instance:
    """An aggregate, and whether it has taken its first tuple."""

    __slots__ = ("_factory", "_new_inwindow", "aggregate", "started")

    aggregate: RowAggregate

    def __init__(self, factory: Factory, new_inwindow: Any = None) -> None:
        self._factory, self._new_inwindow = factory, new_inwindow
        self.reset()

    def reset(self) -> None:
        self.aggregate = self._factory()
        if self._new_inwindow is not None:
            self.aggregate.inwindow = self._new_inwindow()
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


class Running(Evaluation):
    """All tuples so far. With `terminates`, TERMINATE runs after each tuple."""

    def __init__(self, versions: Versions, *, terminates: bool) -> None:
        factory = versions.base or versions.window
        assert factory is not None
        self.instance = Instance(factory, versions.new_inwindow if versions.base is None else None)
        self._holds = versions.base is None and versions.keeps_window
        self._terminates = terminates and versions.base is not None

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:  # noqa: ARG002
        instance = self.instance
        if self._holds:
            instance.aggregate.inwindow.enter(number, arrival, arguments)
        found = instance.take(arguments)
        return [*found, *instance.aggregate.terminate()] if self._terminates else found

    @property
    def windows(self) -> list[Inwindow]:
        return [self.instance.aggregate.inwindow] if self._holds else []

    def save(self) -> Any:
        return self.instance.save()

    def load(self, saved: Any) -> None:
        self.instance.load(saved)


class Framed(Evaluation):
    """A finite frame. Unless it is active, tuples leave it before the next one enters, the oldest first."""

    window: Inwindow

    def __init__(self, frame: Frame) -> None:
        assert frame.size is not None
        self._rows, self._size, self._active = frame.rows, frame.size, frame.active

    def skip(self, arrival: int, time: int) -> None:
        if not self._active:
            self._leave((arrival if self._rows else time) - self._size)

    def advance(self, time: int) -> None:
        if not self._rows and not self._active:
            self._leave(time - self._size)

    def _leave(self, bound: int) -> None:
        """Let the tuples below the bound leave."""
        window = self.window
        while (first := window.first()) is not None and first[1] < bound:
            self._remove(first[0])

    def _remove(self, number: int) -> None:
        self.window.leave(number)

    @property
    def windows(self) -> list[Inwindow]:
        return [self.window]


class Window(Framed):
    """The window version, which is told of each tuple that leaves."""

    def __init__(self, versions: Versions, frame: Frame) -> None:
        super().__init__(frame)
        assert versions.window is not None
        self._instance = Instance(versions.window, versions.new_inwindow)
        self._keeps = versions.keeps_window
        self.window = self._instance.aggregate.inwindow

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        if self._keeps:
            at = arrival if self._rows else time
            if not self._active:
                self._leave(at - self._size)
            self.window.enter(number, at, arguments)
        return self._instance.take(arguments)

    def _remove(self, number: int) -> None:
        self._instance.aggregate.expire(*self.window.rows[number])
        self.window.leave(number)

    def expire(self, number: int) -> Rows | None:
        row = self.window.rows.get(number)
        if row is None:
            return None
        aggregate = self._instance.aggregate
        found = aggregate.expire(*row)
        self.window.leave(number)
        result = getattr(aggregate, "result", None)  # of an aggregate in Python
        return found if result is None or not self.window.rows else [*found, *result()]

    def save(self) -> Any:
        return self._instance.save()

    def load(self, saved: Any) -> None:
        self._instance.load(saved)


class Naive(Framed):
    """The base version over the whole frame: the results of the frame's last tuple, and those of TERMINATE."""

    def __init__(self, versions: Versions, frame: Frame) -> None:
        super().__init__(frame)
        assert versions.base is not None
        self._base, self.window = versions.base, Inwindow()

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        self.enter(number, arrival, time, arguments)
        return self._computed()

    def enter(self, number: int, arrival: int, time: int, arguments: Row) -> None:
        self.skip(arrival, time)
        self.window.enter(number, arrival if self._rows else time, arguments)

    def _computed(self) -> Rows:
        instance, found = Instance(self._base), NO_ROWS
        if (whole := getattr(instance.aggregate, "whole", None)) is not None and self.window.rows:
            return whole([*self.window.rows.values()])  # type: ignore[no-any-return]
        for row in self.window.rows.values():
            found = instance.take(row)
        return [*found, *instance.aggregate.terminate()] if instance.started else NO_ROWS

    def expire(self, number: int) -> Rows | None:
        if number not in self.window.rows:
            return None
        self.window.leave(number)
        return self._computed()

    def save(self) -> Any:
        return None

    def load(self, saved: Any) -> None:
        pass


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
        for window in self._running.windows:
            window.clear()
        kept = self._running.windows
        instance.reset()
        for window in kept:
            instance.aggregate.inwindow = window
        return found

    @property
    def windows(self) -> list[Inwindow]:
        return self._running.windows

    def save(self) -> Any:
        return self._running.save()

    def load(self, saved: Any) -> None:
        self._running.load(saved)


class Panes(Evaluation):
    """An ALGEBRAIC aggregate: the results of panes enter the frame of the window version."""

    def __init__(self, versions: Versions, width: int, slide: int) -> None:
        self._pane, self._slide = gcd(width, slide), slide
        self._inner = Tumble(versions, self._pane, self._pane)
        self._outer = Window(versions, Frame("ROWS", width // self._pane - 1))

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        found = NO_ROWS
        for row in self._inner.take(number, arrival, time, arguments):
            found = self._outer.take(number, arrival // self._pane, time, row)
        return found if (arrival + 1) % self._slide == 0 else NO_ROWS

    @property
    def windows(self) -> list[Inwindow]:
        return [*self._inner.windows, *self._outer.windows]

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
    """Tuples without NULLs; the others repeat the last results. Before the first results these are NULL."""

    def __init__(self, inner: Evaluation, width: int, *, repeats: bool) -> None:
        super().__init__(inner)
        self._repeats = repeats
        self._last: Rows = [(None,) * width] if repeats else NO_ROWS

    def take(self, number: int, arrival: int, time: int, arguments: Row) -> Rows:
        if None in arguments:
            self._inner.skip(arrival, time)
            return self._last
        found = self._inner.take(number, arrival, time, arguments)
        if self._repeats:
            self._last = found
        return found

    def expire(self, number: int) -> Rows | None:
        found = self._inner.expire(number)
        if found is not None:
            self._last = found
        return found

    def save(self) -> Any:
        return self._inner.save(), list(self._last)

    def load(self, saved: Any) -> None:
        inner, last = saved
        self._inner.load(inner)
        self._last = [tuple(row) for row in last]
