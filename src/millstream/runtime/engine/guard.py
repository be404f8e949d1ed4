"""Guards: a reader of a buffer drops the tuples that it has disclaimed in feedback.

A guard has the patterns of the feedback that the reader has sent, which its buffer remembers. It drops tuples only;
punctuation passes. A pattern is removed once punctuation, or time, covers it: no such tuple will arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from typing import Any, TypeGuard

import polars as pl

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import Form, Restriction, one_of
from millstream.algebra.schema import FOREVER, NEVER, Schema
from millstream.algebra.types import micros
from millstream.algebra.upstream import Upstream
from millstream.runtime.engine.gate import Gate, GuardReading
from millstream.runtime.operator.frames import where

MOST_SEEN = 20_000
"""About the most punctuations that a sink remembers."""
MOST_RECENT = 1_000
"""Elements that are added to the set at once."""


class Guard:
    """The patterns of one reader."""

    __slots__ = ("_lists", "_set", "gate", "patterns")

    def __init__(self, messages: Iterable[Upstream] = ()) -> None:
        self.patterns = [message.pattern for message in messages if _drops(message)]
        self._set: PunctuationSet | None = None  # of the patterns without lists of values, which it would multiply
        self._lists: list[pl.Expr] = []
        self.gate = Gate()

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def filter(self, rows: pl.DataFrame, behind: Callable[[], int] | None = None) -> pl.DataFrame | None:
        """Return the rows that no pattern matches; None if there are none. `behind` returns the cost of the operators
        behind the guard for a tuple, if the guard may sleep."""
        if behind is not None and self.gate.passes(rows.height):
            return rows
        kept = self._kept(rows)
        dropped = rows.height - (0 if kept is None else kept.height)
        columns = 0 if behind is None else len({name for pattern in self.patterns for name in pattern.attributes})
        self.gate.count(rows.height, dropped, columns, behind)
        return kept

    def reading(self) -> GuardReading:
        gate = self.gate
        return GuardReading(tuple(map(str, self.patterns)), gate.tested, gate.dropped, gate.asleep)

    def _kept(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        if any(not pattern.items for pattern in self.patterns):
            return None
        ignored = self._match(rows)
        count = int(ignored.sum())
        if not count:
            return rows
        return None if count == rows.height else where(rows, ~ignored)

    def _match(self, rows: pl.DataFrame) -> pl.Series:
        if self._set is None:
            self._set = PunctuationSet()
            self._set.add(Punctuations.of([pattern for pattern in self.patterns if not listed(pattern)]))
            self._lists = [pattern.expression() for pattern in self.patterns if listed(pattern)]
        if not self._lists:
            return self._set.match(rows)
        found = rows.select(pl.any_horizontal(self._lists).alias("match")).to_series()
        return found if len(self._lists) == len(self.patterns) else found | self._set.match(rows)


def listed(pattern: Pattern) -> bool:
    """True if a pattern has a list of values."""
    return any(len(restriction.values) > 1 for _, restriction in pattern.items)


def _drops(message: Upstream) -> TypeGuard[Feedback]:
    return isinstance(message, Feedback) and message.intent is Intent.ASSUMED and not message.relayed


class Seen:
    """The punctuations that a sink has received. It forgets them when they are many, and are not bounds or ranges: a
    guard against tuples that they exclude then stays until the query ends."""

    __slots__ = ("_recent", "_set")

    def __init__(self) -> None:
        self._set = PunctuationSet()
        self._recent: list[Punctuations] = []

    def add(self, punctuations: Punctuations) -> None:
        self._recent.append(punctuations)
        if len(self._recent) >= MOST_RECENT:
            self._fold()

    def _fold(self) -> PunctuationSet:
        """Add the recent punctuations to the set, all at once."""
        if self._recent:
            if len(self._set) > MOST_SEEN:
                self._set = PunctuationSet()
            self._set.admit(Punctuations.concat(self._recent))
            self._recent = []
        return self._set

    def covers(self, pattern: Pattern) -> bool:
        return self._fold().covers(pattern)

    def to_value(self) -> dict[str, Any]:
        return self._fold().to_value()

    def restore(self, value: Any) -> None:
        self._set, self._recent = PunctuationSet.from_value(value), []


def covered_by(punctuations: Punctuations) -> Callable[[Pattern], bool]:
    """Return whether one of these punctuations covers a pattern."""
    known = punctuations.patterns()
    return lambda pattern: any(p.covers(pattern) for p in known)


def narrowed(pattern: Pattern, punctuations: Punctuations) -> Pattern:
    """Return a pattern with lists of values without those that punctuations cover one by one.

    >>> from millstream.algebra.punctuation.restriction import below
    >>> closed = Punctuations.of([Pattern.of(k=one_of([1, 2])), Pattern.of(k=below(0)), Pattern.of(j=one_of([4]))])
    >>> str(narrowed(Pattern.of(k=one_of([-1, 1, 2, 3, 4])), closed))
    '[k {3, 4}]'
    """
    lists = [name for name, restriction in pattern.items if len(restriction.values) > 1]
    if not lists:
        return pattern
    left = dict(pattern.items)
    for name in lists:
        others = Pattern.of({own: restriction for own, restriction in left.items() if own != name})
        closing = [closed for p in punctuations.patterns() if (closed := _closed(p, name, others)) is not None]
        values = set(left[name].values).difference(*(restriction.values for restriction in closing))
        bounds = [restriction for restriction in closing if not restriction.values]
        left[name] = one_of(value for value in values if not any(bound.matches(value) for bound in bounds))
    return Pattern.of(left)


def _closed(punctuation: Pattern, name: str, others: Pattern) -> Restriction | None:
    """Return the values of a column that a punctuation closes for tuples that match `others`; None: none."""
    if name not in punctuation.attributes:
        return None
    covers = all(r.covers(others.get(own)) for own, r in punctuation.items if own != name)
    return punctuation.get(name) if covers else None


def passed_by(schema: Schema, bound: int) -> Callable[[Pattern], bool]:
    """Return whether a pattern matches only tuples below a bound on time."""
    times = schema.times

    def passed(pattern: Pattern) -> bool:
        if bound in (NEVER, FOREVER):
            return bound == FOREVER
        for name, offset in times.items():
            restriction = pattern.get(name)
            if restriction.form is Form.ONE_OF:
                highest, closed = max(restriction.values), True
            elif restriction.form is Form.INTERVAL and restriction.hi is not None:
                highest, closed = restriction.hi, restriction.hi_closed
            else:
                continue
            if _ticks(highest) + closed <= bound + offset:
                return True
        return False

    return passed


def _ticks(value: Any) -> int:
    """A value of a time column, in units of time."""
    if isinstance(value, datetime | timedelta):
        return micros(value)
    if isinstance(value, date):
        return micros(datetime(value.year, value.month, value.day))
    return int(value) if value == int(value) else int(value) + 1
