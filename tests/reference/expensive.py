"""Work with a budget, a tuple at a time: a queue in order of arrival, and the tuples that wait aside or are shed."""

from __future__ import annotations

from typing import Any

from millstream.algebra.punctuation.pattern import Pattern

Row = dict[str, Any]


class Expensive:
    """`waiting` has the tuples that nothing was computed for yet, but for those aside. `share`: the number of
    other tuples before one from aside is due (0: none is while others wait); None: no tuple is put aside. `sheds`:
    tuples that a prod has passed are `lost` instead."""

    def __init__(self, budget: int, share: int | None = None, *, sheds: bool = False) -> None:
        self.budget, self.share, self.sheds = budget, share, sheds
        self.lost: list[Row] = []
        self.waiting: list[Row] = []
        self.aside: list[Row] = []
        self.desired: list[Pattern] = []
        self.answered: list[Pattern] = []
        self.turn = 0

    def receive(self, row: Row) -> None:
        behind = any(each.matches(row) for each in self.answered) and not any(p.matches(row) for p in self.desired)
        (self.waiting if not behind else self.lost if self.sheds else self.aside).append(row)

    def prod(self, passed: Pattern) -> None:
        """Tuples that match are behind from now on: those that wait, and those that arrive later."""
        self.answered.append(passed)
        waiting, self.waiting = self.waiting, []
        for row in waiting:
            self.receive(row)

    def work(self) -> list[Row]:
        """The tuples that one batch works on."""
        return [self.one() for _ in range(min(self.budget, len(self.waiting) + len(self.aside)))]

    def one(self) -> Row:
        due = False
        if self.share and self.aside:
            self.turn = (self.turn + 1) % (self.share + 1)
            due = self.turn == 0
        if self.aside and (due or not self.waiting):
            row = self.aside.pop(0)
            self.turn = self.turn if self.aside else 0
            return row
        for pattern in self.desired:
            for place, row in enumerate(self.waiting):
                if pattern.matches(row):
                    return self.waiting.pop(place)
        return self.waiting.pop(0)

    def disclaim(self, pattern: Pattern) -> None:
        self.waiting = [row for row in self.waiting if not pattern.matches(row)]
        self.aside = [row for row in self.aside if not pattern.matches(row)]

    def desire(self, pattern: Pattern) -> None:
        if not any(each.covers(pattern) for each in self.desired):
            self.desired = [*(each for each in self.desired if not pattern.covers(each)), pattern]
            self.waiting += [row for row in self.aside if pattern.matches(row)]
            self.aside = [row for row in self.aside if not pattern.matches(row)]
