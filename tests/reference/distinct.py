"""Duplicate elimination, tuple at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import NEVER, TS

Row = dict[str, Any]


@dataclass
class DistinctReference:
    columns: tuple[str, ...]
    time: str | None
    state: list[Row] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    punctuations: list[Pattern] = field(default_factory=list)
    put_out: PunctuationSet = field(default_factory=PunctuationSet)

    def tuple_(self, row: Row) -> None:
        if not any(all(row[name] == seen[name] for name in self.columns) for seen in self.state):
            self.state.append(row)
            self.rows.append(row)

    def punctuation(self, pattern: Pattern) -> None:
        self.state = [row for row in self.state if not pattern.matches(row)]
        if len(self.put_out.add(Punctuations.of([pattern]))):
            self.punctuations.append(pattern)

    def bound(self, value: int) -> None:
        if self.time is not None and value > NEVER:
            self.state = [row for row in self.state if row[TS] >= value]
