"""RECENT and CHRONICLE, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import FOREVER, TS
from tests.runtime.ports import covered

Row = dict[str, Any]


class ReferenceSequence:
    def __init__(
        self,
        mode: str,
        names: Sequence[dict[str, str]],
        keys: Sequence[tuple[str, str]],
        residual: Callable[[Row], bool | None],
    ) -> None:
        self.mode, self.names, self.keys, self.residual = mode, names, keys, residual
        self.stored: list[Row] = []
        self.closed: list[Pattern] = []
        self.pending: list[Pattern] = []
        self.ended = False
        self.out_rows: list[Row] = []
        self.out_patterns: list[Pattern] = []

    def key(self, side: int, row: Row) -> tuple[Any, ...]:
        return tuple(row[pair[side]] for pair in self.keys)

    def row(self, side: int, row: Row) -> None:
        key = self.key(side, row)
        if None in key:
            return
        if side == 0:
            if self.mode == "RECENT":
                self.stored = [other for other in self.stored if self.key(0, other) != key]
            self.stored.append(row)
        else:
            candidates = [a for a in self.stored if self.key(0, a) == key]
            results = [(a, self.result(a, row)) for a in candidates]
            matching = [(a, result) for a, result in results if self.residual(result) is True]
            if matching:
                self.out_rows.append(matching[0][1])
                if self.mode == "CHRONICLE":
                    self.stored = [a for a in self.stored if a is not matching[0][0]]
        self.clean()

    def result(self, a: Row, b: Row) -> Row:
        left = {self.names[0][name]: value for name, value in a.items() if name != TS}
        right = {self.names[1][name]: value for name, value in b.items() if name != TS}
        return left | right | {TS: b[TS]}

    def punctuation(self, side: int, pattern: Pattern) -> None:
        if side == 0:
            self.pending.append(pattern)
        else:
            mapping = {b: a for a, b in self.keys}
            if pattern.attributes <= mapping.keys():
                self.closed.append(pattern.rename(mapping))
            self.put_out(pattern.rename({**self.names[1], **{b: self.names[0][a] for a, b in self.keys}}))
        self.clean()

    def bound(self, side: int, bound: int) -> None:
        self.ended = self.ended or (side == 1 and bound == FOREVER)
        self.clean()

    def clean(self) -> None:
        closed = [a for a in self.stored if self.ended or any(pattern.matches(a) for pattern in self.closed)]
        self.stored = [a for a in self.stored if all(a is not other for other in closed)]
        for pattern in list(self.pending):
            if not any(pattern.matches(a) for a in self.stored):
                self.pending.remove(pattern)
                self.put_out(pattern.rename(self.names[0]))

    def put_out(self, pattern: Pattern) -> None:
        if not covered(pattern, self.out_patterns):
            self.out_patterns.append(pattern)
