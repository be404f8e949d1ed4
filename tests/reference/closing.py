"""Closing, one element at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal
from tests.runtime.ports import covered

Row = dict[str, Any]


class ReferenceClosing:
    """`keys` pairs columns of the first input with columns of the closing one."""

    def __init__(self, keys: Sequence[tuple[str, str]]) -> None:
        self.keys = keys
        self.closed: set[tuple[Any, ...]] = set()
        self.rows: list[Row] = []
        self.late: list[Row] = []
        self.patterns: list[Pattern] = []

    def row(self, port: int, row: Row) -> None:
        if port == 0:
            key = tuple(row[own] for own, _ in self.keys)
            (self.late if key in self.closed else self.rows).append(row)
            return
        key = tuple(row[other] for _, other in self.keys)
        if None not in key and key not in self.closed:
            self.closed.add(key)
            self.promise(Pattern.of({own: equal(value) for (own, _), value in zip(self.keys, key, strict=True)}))

    def promise(self, pattern: Pattern) -> None:
        """Put out a punctuation, unless it says nothing new of the key."""
        restricts_key = not pattern.attributes.isdisjoint(own for own, _ in self.keys)
        if not restricts_key or not covered(pattern, self.patterns):
            self.patterns.append(pattern)
