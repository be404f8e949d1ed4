"""The gate of a guard: whether testing tuples pays.

A test costs a share of what the operators behind the guard cost for a tuple, for each column that is restricted.
After `WINDOW` tested tuples a guard sleeps if the tuples that it has dropped would have cost less than the tests. After
`REST` times as many tuples it is tried again. The decision depends on counted tuples alone, never on the time taken.

Only a guard before an operator without state sleeps: tuples that it lets pass lead to results that a guard behind it
drops. The guard of a sink is what the sender of the feedback sees. Where an operator has purged its state, the guard
and the purge are one step: a tuple that passed would begin a group anew.

>>> gate = Gate()
>>> gate.count(WINDOW, 0, 1, lambda: 1)
>>> gate.asleep, gate.passes(WINDOW), gate.passes(WINDOW * REST), gate.passes(1)
(True, True, True, False)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.algebra.values import record

WINDOW = 65_536
REST = 16
TEST = 1 / 32
"""The cost of testing one column of a tuple, if an operator without state costs 1 for a tuple."""
STATEFUL = 4
"""The cost of an operator with state for a tuple."""


@record("guard_reading")
class GuardReading:
    """What a guard has done: its first patterns, the tuples that it has tested and dropped, whether it sleeps, and the
    number of its patterns, and of the values and ranges in them."""

    patterns: tuple[str, ...]
    tested: int
    dropped: int
    asleep: bool
    count: int = 0
    values: int = 0


class Gate:
    __slots__ = ("_dropped", "_rest", "_tested", "dropped", "tested")

    def __init__(self) -> None:
        self.tested = self.dropped = 0
        self._tested = self._dropped = self._rest = 0

    @property
    def asleep(self) -> bool:
        return self._rest > 0

    def passes(self, rows: int) -> bool:
        """Return whether the guard lets these tuples pass untested."""
        if self._rest <= 0:
            return False
        self._rest -= rows
        return True

    def count(self, tested: int, dropped: int, columns: int, behind: Callable[[], int] | None) -> None:
        """Count a test of some columns. `behind` returns the cost of the operators behind the guard for a tuple; None:
        the guard must not sleep."""
        self.tested += tested
        self.dropped += dropped
        if behind is None:
            return
        self._tested += tested
        self._dropped += dropped
        if self._tested >= WINDOW:
            if self._dropped * behind() < self._tested * columns * TEST:
                self._rest = self._tested * REST
            self._tested = self._dropped = 0

    def wake(self) -> None:
        """Test again: the patterns have changed."""
        self._tested = self._dropped = self._rest = 0

    def to_value(self) -> tuple[int, ...]:
        return self.tested, self.dropped, self._tested, self._dropped, self._rest

    def restore(self, value: Any) -> None:
        self.tested, self.dropped, self._tested, self._dropped, self._rest = value
