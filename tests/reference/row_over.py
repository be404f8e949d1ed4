"""User-defined aggregates over frames, one tuple and one expiry at a time: algorithms A15 to A18 as they are stated."""

from __future__ import annotations

from itertools import product
from typing import Any

from millstream.algebra.program.call import ProgramCall
from millstream.logical.nodes.over import Over
from tests.reference.over import Row, Rows, events
from tests.reference.program import Interpreter

Values = tuple[Any, ...]


class Held(tuple[Any, ...]):
    """The arguments of a tuple in the window, with its number, and its place in the frame."""

    number: int
    place: int


class Evaluated:
    """One call in one partition."""

    def __init__(self, call: ProgramCall, plan: Over) -> None:
        self.call, self.frame = call, plan.frame
        self.arrivals = 0
        self.window: list[Any] = []
        self.by_window = call.window is not None and (self.frame.size is not None or call.base is None)
        self.tumbles = self.frame.tumbles and call.base is not None
        self.restart()
        self.last: list[Values] = [] if self.frame.base else [(None,) * len(call.outputs)]

    def restart(self) -> None:
        program = self.call.window if self.by_window else self.call.base
        assert program is not None
        self.instance = Interpreter(program, self.window)

    def take(self, number: int, time: int, arguments: Values) -> list[Values]:
        """The results of a tuple, whether or not a slide emits them."""
        arrival, self.arrivals = self.arrivals, self.arrivals + 1
        place = arrival if self.frame.rows else time
        if self.frame.size is not None and not self.frame.active:
            self._leave(place - self.frame.size)
        if self.call.program.ignore_nulls and None in arguments:
            return [] if self.frame.base else self.last
        held = Held(arguments)
        held.number, held.place = number, place
        self.window.append(held)
        found = self._results(arguments)
        self.last = found or self.last
        return found

    def _results(self, arguments: Values) -> list[Values]:
        if self.frame.size is None:
            found = self.instance.take(arguments)
            return found if self.frame.base or self.by_window else found + self.instance.terminate()
        return self.instance.take(arguments) if self.by_window and not self.tumbles else self._naive()

    def _naive(self) -> list[Values]:
        """The base version over the whole frame, which for a tumble is what it would be if restarted for each slot."""
        assert self.call.base is not None
        instance, found = Interpreter(self.call.base), list[Values]()
        for row in list(self.window):
            found = instance.take(row)
        return found + instance.terminate() if instance.started else []

    def _leave(self, bound: int) -> None:
        while self.window and self.window[0].place < bound:
            self._remove(self.window[0])

    def _remove(self, held: Held) -> list[Values]:
        found = self.instance.expire(tuple(held)) if self.by_window and not self.tumbles else []
        self.window[:] = [other for other in self.window if other is not held]
        return found

    def expire(self, number: int) -> list[Values]:
        held = next((held for held in self.window if held.number == number), None)
        if held is None:
            return []
        found = self._remove(held)
        found = found if self.by_window else self._naive()
        self.last = found or self.last
        return found


def row_over(plan: Over, rows: Rows) -> Rows:
    """All results; the end of the stream ends the last slot, and every tuple leaves an active frame."""
    frame = plan.frame
    partitions: dict[Values, list[Evaluated]] = {}
    numbers: dict[int, int] = {}
    slots: dict[Values, list[tuple[Row, int]]] = {}
    found: Rows = []
    for number, (kind, ts, row) in enumerate(events(plan, rows)):
        key = tuple("NaN" if row[name] != row[name] else row[name] for name in plan.partition)
        calls = partitions.setdefault(key, [Evaluated(call, plan) for call in plan.calls])  # type: ignore[arg-type]
        moved = row
        if kind == "expiry":
            results = [each.expire(numbers[id(row)]) for each in calls]
            if plan.schema.time:
                moved = row | {plan.schema.time: row[plan.schema.time] + frame.size}
        else:
            numbers[id(row)] = number
            results = [each.take(number, ts, tuple(row[name] for name in each.call.arguments)) for each in calls]
        columns = [column.name for call in plan.calls for column in call.outputs]
        made = [
            (moved | dict(zip(columns, [value for part in parts for value in part], strict=True)), ts)
            for parts in product(*results)
        ]
        if frame.slots is not None:
            slots[(*key, frame.slots.following(ts))] = made
        elif frame.slide is None or calls[0].arrivals % frame.slide == 0:
            found += made
    return found + sorted((pair for pairs in slots.values() for pair in pairs), key=lambda pair: pair[1])
