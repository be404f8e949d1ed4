"""Outer joins of two streams: one tuple at a time, and as SQL defines them over streams that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import FOREVER, TS
from tests.reference.window_join import ReferenceJoin, Row
from tests.runtime.ports import covered


class ReferenceOuterJoin(ReferenceJoin):
    """A tuple of a preserved side is padded as soon as the rules of the window join say that nothing can join it."""

    def __init__(self, preserved: tuple[bool, bool], *args: Any) -> None:
        super().__init__(*args)
        self.preserved = preserved
        self.matched: list[set[int]] = [set(), set()]
        self.padded: list[Row] = []
        self.said_all = [False, False]

    def row(self, side: int, row: Row) -> None:
        number = self.count[side] + 1
        for other, stored in self.stored[1 - side]:
            a, b = (row, stored) if side == 0 else (stored, row)
            if not self.equal_keys(a, b) or not self.in_window(side, row, other, stored):
                continue
            result = self.joined(a, b)
            if self.residual(result) is True:
                self.out_rows.append(result)
                self.matched[side].add(number)
                self.matched[1 - side].add(other)
        self.count[side] = number
        self.stored[side].append((number, row))
        self.clean()

    def joined(self, a: Row, b: Row) -> Row:
        return self.renamed(0, a) | self.renamed(1, b) | {TS: max(a[TS], b[TS])}

    def clean(self) -> None:
        for side in (0, 1):
            for number, row in self.stored[side]:
                if self.preserved[side] and number not in self.matched[side] and not self.useful(side, number, row):
                    nothing = dict.fromkeys(self.names[1 - side].values())
                    self.padded.append(self.renamed(side, row) | nothing | {TS: row[TS]})
        super().clean()

    def put_out(self, side: int, pattern: Pattern) -> None:
        if not pattern.attributes:
            self.said_all[side] = True
            if self.preserved[1 - side] and not self.said_all[1 - side]:
                return
        renamed = pattern.rename(dict(self.names[side]))
        if not covered(renamed, self.out_patterns):
            self.out_patterns.append(renamed)

    def waiting(self) -> int:
        """The oldest timestamp that a padded row may still have, of the tuples that have come."""
        times = [
            row[TS]
            for side in (0, 1)
            for number, row in self.stored[side]
            if self.preserved[side] and number not in self.matched[side]
        ]
        return min(times, default=FOREVER)


def brute_force(model: ReferenceOuterJoin, rows: Sequence[list[Row]]) -> tuple[list[Row], list[Row]]:
    """All pairs of two whole streams, and all padded rows; without ROWS windows, where the order would count."""
    pairs: list[Row] = []
    matched: list[set[int]] = [set(), set()]
    for i, a in enumerate(rows[0]):
        for j, b in enumerate(rows[1]):
            result = model.joined(a, b)
            if model.equal_keys(a, b) and model.in_window(0, a, 0, b) and model.residual(result) is True:
                pairs.append(result)
                matched[0].add(i)
                matched[1].add(j)
    padded = [
        model.renamed(side, row) | dict.fromkeys(model.names[1 - side].values()) | {TS: row[TS]}
        for side in (0, 1)
        for number, row in enumerate(rows[side])
        if model.preserved[side] and number not in matched[side]
    ]
    return pairs, padded
