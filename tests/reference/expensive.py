"""Work with a budget, a tuple at a time: a queue in the order of arrival."""

from __future__ import annotations

from typing import Any

from millstream.algebra.punctuation.pattern import Pattern

Row = dict[str, Any]


class Expensive:
    """`waiting` has the tuples that nothing was computed for yet."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.waiting: list[Row] = []
        self.desired: list[Pattern] = []

    def receive(self, row: Row) -> None:
        self.waiting.append(row)

    def work(self) -> list[Row]:
        """The tuples that one batch works on, in the order of arrival."""
        chosen: list[int] = []
        for pattern in self.desired:
            chosen += [n for n, row in enumerate(self.waiting) if n not in chosen and pattern.matches(row)]
        chosen += [n for n in range(len(self.waiting)) if n not in chosen]
        taken = sorted(chosen[: self.budget])
        done = [self.waiting[n] for n in taken]
        self.waiting = [row for n, row in enumerate(self.waiting) if n not in taken]
        return done

    def disclaim(self, pattern: Pattern) -> None:
        self.waiting = [row for row in self.waiting if not pattern.matches(row)]

    def desire(self, pattern: Pattern) -> None:
        if not any(each.covers(pattern) for each in self.desired):
            self.desired = [*(each for each in self.desired if not pattern.covers(each)), pattern]
