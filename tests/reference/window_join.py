"""The symmetric window join, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.algebra.expression import Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.window import Window
from tests.reference.later_partner import excluded
from tests.runtime.ports import covered

Row = dict[str, Any]


class ReferenceJoin:
    """Rows and patterns are given under the inputs' names; `names[side]` gives the output's."""

    def __init__(
        self,
        schemas: Sequence[Schema],
        names: Sequence[dict[str, str]],
        keys: Sequence[tuple[str, str]],
        residual: Callable[[Row], bool | None],
        windows: Sequence[Window],
        condition: Expression | None = None,
    ) -> None:
        """`condition`: what `residual` tests, if it relates times."""
        self.condition = condition
        self.schemas, self.names, self.keys, self.residual, self.windows = schemas, names, keys, residual, windows
        self.by_rows = any(window.rows is not None for window in windows)
        self.stored: list[list[tuple[int, Row]]] = [[], []]
        self.count = [0, 0]
        self.bounds = [NEVER, NEVER]
        self.closed: list[list[Pattern]] = [[], []]
        self.pending: list[list[Pattern]] = [[], []]
        self.out_rows: list[Row] = []
        self.out_patterns: list[Pattern] = []

    def row(self, side: int, row: Row) -> None:
        for number, stored in self.stored[1 - side]:
            a, b = (row, stored) if side == 0 else (stored, row)
            if self.equal_keys(a, b) and self.in_window(side, row, number, stored):
                result = self.renamed(0, a) | self.renamed(1, b) | {TS: max(a[TS], b[TS])}
                if self.residual(result) is True:
                    self.out_rows.append(result)
        self.count[side] += 1
        self.stored[side].append((self.count[side], row))
        self.clean()

    def equal_keys(self, a: Row, b: Row) -> bool:
        return all(a[x] is not None and a[x] == b[y] for x, y in self.keys)

    def in_window(self, side: int, probing: Row, number: int, stored: Row) -> bool:
        own, other = self.windows[1 - side], self.windows[side]
        if not self.by_rows:
            age = probing[TS] - stored[TS]
            older = own if age >= 0 else other
            return older.range is None or abs(age) <= older.range
        if own.rows is not None:
            return number > self.count[1 - side] - own.rows
        return own.range is None or 0 <= probing[TS] - stored[TS] <= own.range

    def punctuation(self, side: int, pattern: Pattern) -> None:
        self.pending[side].append(pattern)
        translated = self.translated(side, pattern)
        if translated is not None:
            self.closed[1 - side].append(translated)
        self.clean()

    def translated(self, side: int, pattern: Pattern) -> Pattern | None:
        """What a punctuation closes on the other side, under the other side's names."""
        mapping = {pair[side]: pair[1 - side] for pair in self.keys}
        time, kept_for = self.schemas[side].time, self.windows[1 - side].range
        made = {}
        for name, restriction in pattern.items:
            if name in mapping:
                made[mapping[name]] = restriction
            elif name == time and kept_for is not None and restriction.is_upper:
                made[TS] = below(restriction.hi - kept_for)
            else:
                return None
        return Pattern.of(made)

    def bound(self, side: int, bound: int) -> None:
        self.bounds[side] = max(self.bounds[side], bound)
        self.clean()

    def clean(self) -> None:
        for side in (0, 1):
            self.stored[side] = [item for item in self.stored[side] if self.useful(side, *item)]
        for side in (0, 1):
            for pattern in list(self.pending[side]):
                if not any(pattern.matches(row) for _, row in self.stored[side]):
                    self.pending[side].remove(pattern)
                    self.put_out(side, pattern)

    def useful(self, side: int, number: int, row: Row) -> bool:
        window, bound = self.windows[side], self.bounds[1 - side]
        if any(row[pair[side]] is None for pair in self.keys) or bound == FOREVER:
            return False
        if window.rows is not None and number <= self.count[side] - window.rows:
            return False
        if window.range is not None and row[TS] + window.range < bound:
            return False
        keys = [(self.names[side][pair[side]], self.names[1 - side][pair[1 - side]]) for pair in self.keys]
        time = self.names[1 - side][str(self.schemas[1 - side].time)]
        if excluded(self.renamed(side, row), time, bound, keys, self.condition):
            return False
        return not any(pattern.matches(row) for pattern in self.closed[side])

    def put_out(self, side: int, pattern: Pattern) -> None:
        names = dict(self.names[side])
        if side == 1:
            names |= {b: self.names[0][a] for a, b in self.keys}
        renamed = pattern.rename(names)
        if not covered(renamed, self.out_patterns):
            self.out_patterns.append(renamed)

    def renamed(self, side: int, row: Row) -> Row:
        return {self.names[side][name]: value for name, value in row.items() if name != TS}
