"""Union, one element at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import below
from millstream.algebra.schema import NEVER
from tests.runtime.ports import covered

Row = dict[str, Any]


class ReferenceUnion:
    def __init__(self, names: Sequence[dict[str, str]], time: str | None) -> None:
        self.names, self.time = names, time
        self.promised: list[list[Pattern]] = [[] for _ in names]
        self.bounds = [NEVER for _ in names]
        self.waiting: list[tuple[int, Pattern]] = []
        self.out_rows: list[Row] = []
        self.out_patterns: list[Pattern] = []

    def row(self, port: int, row: Row) -> None:
        self.out_rows.append({self.names[port].get(name, name): value for name, value in row.items()})

    def punctuation(self, port: int, pattern: Pattern) -> None:
        renamed = pattern.rename(self.names[port])
        if not covered(renamed, self.promised[port]):
            self.promised[port].append(renamed)
            self.waiting.append((port, renamed))
        self.release()

    def bound(self, port: int, bound: int) -> None:
        self.bounds[port] = max(self.bounds[port], bound)
        self.release()

    def release(self) -> None:
        for port, pattern in list(self.waiting):
            if all(self.granted(other, pattern) for other in range(len(self.names)) if other != port):
                self.waiting.remove((port, pattern))
                if not covered(pattern, self.out_patterns):
                    self.out_patterns.append(pattern)

    def granted(self, other: int, pattern: Pattern) -> bool:
        by_time = self.time is not None and Pattern.of({self.time: below(self.bounds[other])}).covers(pattern)
        return by_time or covered(pattern, self.promised[other])
