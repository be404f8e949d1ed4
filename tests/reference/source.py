"""The front end of a stream, element by element."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import NEVER

Row = dict[str, Any]


@dataclass
class SourceReference:
    """For streams whose time column `time` is BIGINT; None: not stamped by a column."""

    time: str | None = "ts"
    in_order: bool = False
    watermark: int | None = None
    primary_key: tuple[str, ...] = ()
    ascending: tuple[str, ...] = ()
    out: list[Row | Pattern] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    progress: int = NEVER
    promises: list[Pattern] = field(default_factory=list)
    put_out: PunctuationSet = field(default_factory=PunctuationSet)
    newest: int | None = None
    highest: Row = field(default_factory=dict)

    def take(self, element: Row | Pattern) -> None:
        if isinstance(element, Pattern):
            self.punctuation(element)
        elif self.is_late(element):
            self.late.append(element)
        else:
            self.accept(element)

    def is_late(self, row: Row) -> bool:
        if any(pattern.matches(row) for pattern in self.promises):
            return True
        if any(name in self.highest and row[name] < self.highest[name] for name in self.ascending):
            return True
        return bool(self.in_order and self.time and self.newest is not None and row[self.time] < self.newest)

    def accept(self, row: Row) -> None:
        self.out.append(row)
        if self.time is not None and (self.newest is None or row[self.time] > self.newest):
            self.newest = row[self.time]
            if self.watermark is not None:
                self.punctuation(Pattern.of({self.time: below(self.newest - self.watermark)}))
        for name in self.ascending:
            if name not in self.highest or row[name] > self.highest[name]:
                self.highest[name] = row[name]
                self.punctuation(Pattern.of({name: below(row[name])}))
        if self.primary_key:
            self.punctuation(Pattern.of({name: equal(row[name]) for name in self.primary_key}))

    def punctuation(self, pattern: Pattern) -> None:
        self.promises.append(pattern)
        if self.time is not None and pattern.attributes == {self.time} and pattern.get(self.time).is_upper:
            self.progress = max(self.progress, pattern.get(self.time).hi)
        if len(self.put_out.add(Punctuations.of([pattern]))):
            self.out.append(pattern)
