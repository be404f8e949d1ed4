"""The multi-join on a common key, tuple by tuple: results from all tuples that ever came, state by its definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from millstream.algebra.expression import Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.window import Window
from tests.reference.later_partner import excluded
from tests.runtime.ports import covered

Row = dict[str, Any]
Numbered = tuple[int, Row]


class ReferenceMultiJoin:
    """Rows and patterns are given under the inputs' names; `names[side]` gives the output's; all inputs are joined on
    their column `key`."""

    def __init__(
        self,
        schemas: Sequence[Schema],
        names: Sequence[dict[str, str]],
        key: str,
        residual: Callable[[Row], bool | None],
        windows: Sequence[Window],
        merges: bool,
        condition: Expression | None = None,
    ) -> None:
        """`condition`: what `residual` tests, if it relates times."""
        self.condition = condition
        self.schemas, self.names, self.key, self.residual, self.windows = schemas, names, key, residual, windows
        self.sides = range(len(schemas))
        self.by_rows = any(window.rows is not None for window in windows)
        self.timely = merges or not (self.by_rows and any(window.range is not None for window in windows))
        self.came: list[list[Numbered]] = [[] for _ in schemas]
        self.stored: list[list[Numbered]] = [[] for _ in schemas]
        self.bounds = [NEVER for _ in schemas]
        self.promised: list[list[Pattern]] = [[] for _ in schemas]
        self.pending: list[list[Pattern]] = [[] for _ in schemas]
        self.out_rows: list[Row] = []
        self.out_patterns: list[Pattern] = []

    def row(self, side: int, row: Row) -> None:
        alike = [[(0, row)] if j == side else self.alike(self.came[j], row) for j in self.sides]
        for parts in product(*alike):
            newest = max(part[TS] for _, part in parts)
            if all(j == side or self.in_window(j, *parts[j], row, newest) for j in self.sides) and (
                self.by_rows or self.in_window(side, 0, row, row, newest)
            ):
                result: Row = {TS: newest}
                for j, (_, part) in enumerate(parts):
                    result |= {self.names[j][name]: value for name, value in part.items() if name != TS}
                if self.residual(result) is True:
                    self.out_rows.append(result)
        item = len(self.came[side]) + 1, row
        self.came[side].append(item)
        self.stored[side].append(item)
        self.clean()

    def alike(self, items: list[Numbered], row: Row) -> list[Numbered]:
        return [item for item in items if row[self.key] is not None and item[1][self.key] == row[self.key]]

    def in_window(self, j: int, number: int, part: Row, last: Row, newest: int) -> bool:
        window = self.windows[j]
        if window.rows is not None:
            return number > len(self.came[j]) - window.rows
        if window.range is None:
            return True
        return 0 <= (last[TS] if self.by_rows else newest) - part[TS] <= window.range

    def punctuation(self, side: int, pattern: Pattern) -> None:
        self.promised[side].append(pattern)
        self.pending[side].append(pattern)
        self.clean()

    def bound(self, side: int, bound: int) -> None:
        self.bounds[side] = max(self.bounds[side], bound)
        self.clean()

    def clean(self) -> None:
        changed = True
        while changed:
            kept = [[item for item in self.stored[i] if self.useful(i, *item)] for i in self.sides]
            changed = kept != self.stored
            self.stored = kept
        for side in self.sides:
            for pattern in list(self.pending[side]):
                if not any(pattern.matches(row) for _, row in self.stored[side]):
                    self.pending[side].remove(pattern)
                    self.put_out(side, pattern)

    def useful(self, i: int, number: int, row: Row) -> bool:
        window = self.windows[i]
        if row[self.key] is None:
            return False
        if window.rows is not None and number <= len(self.came[i]) - window.rows:
            return False
        others = [j for j in self.sides if j != i]
        if not any(self.may_bring(j, i, row, timely=True) for j in others):
            return False
        return all(self.may_bring(j, i, row, timely=self.timely) or self.holds(j, i, row) for j in others)

    def may_bring(self, j: int, i: int, row: Row, timely: bool) -> bool:
        """Whether input j may still bring a partner for a tuple of input i."""
        reach = self.windows[i].range if timely else None
        if self.bounds[j] == FOREVER or (reach is not None and row[TS] + reach < self.bounds[j]):
            return False
        own = {self.names[i][name]: value for name, value in row.items() if name != TS}
        if excluded(own, self.names[j][str(self.schemas[j].time)], self.bounds[j], (), self.condition):
            return False
        return not any(self.closes(pattern, j, i, row) for pattern in self.promised[j])

    def closes(self, pattern: Pattern, j: int, i: int, row: Row) -> bool:
        reach, time = self.windows[i].range, self.schemas[j].time
        for name, restriction in pattern.items:
            if name == self.key:
                if not restriction.matches(row[self.key]):
                    return False
                continue
            if not (name == time and self.timely and reach is not None and restriction.is_upper):
                return False
            if row[TS] + reach >= restriction.hi:
                return False
        return True

    def holds(self, j: int, i: int, row: Row) -> bool:
        reach = self.windows[i].range if self.timely else None
        alike = self.alike(self.stored[j], row)
        return any(reach is None or other[TS] <= row[TS] + reach for _, other in alike)

    def put_out(self, side: int, pattern: Pattern) -> None:
        renamed = pattern.rename({**self.names[side], self.key: self.names[0][self.key]})
        if not covered(renamed, self.out_patterns):
            self.out_patterns.append(renamed)
