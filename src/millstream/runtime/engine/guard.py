"""Guards: a reader of a buffer drops the tuples that it has disclaimed in feedback.

A guard has the patterns of the feedback that the reader has sent, which its buffer remembers. It drops tuples only;
punctuation passes. A pattern is removed once punctuation, or time, covers it: no such tuple will arrive.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeGuard

import polars as pl

from millstream.algebra.expression import Expression
from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.index import Index, pieces_of
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import Form, one_of
from millstream.algebra.schema import FOREVER, NEVER, Schema
from millstream.algebra.upstream import Upstream
from millstream.runtime.engine.gate import Gate, GuardReading
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.time_closing import FAR, limit_at

Covered = Callable[["Ends"], Sequence[int]]
"""Returns the numbers of the pieces that something covers."""

MOST_SEEN = 20_000
"""About the most punctuations that a sink remembers."""
MOST_RECENT = 32
"""Elements that are added to the set at once. Each of them holds memory of Polars until then."""
SHOWN = 5
"""The most patterns in a reading."""


class Guard:
    """The patterns of one reader."""

    __slots__ = ("_columns", "_everything", "_index", "gate", "patterns")

    def __init__(self, messages: Iterable[Upstream] = ()) -> None:
        self.patterns = [message.pattern for message in messages if _drops(message)]
        self._columns = len({name for pattern in self.patterns for name, _ in pattern.items})
        self._everything = any(not pattern.items for pattern in self.patterns)
        self._index: Index | None = None
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
        self.gate.count(rows.height, dropped, self._columns, behind)
        return kept

    def reading(self) -> GuardReading:
        gate, values = self.gate, sum(len(part.values) or 1 for pattern in self.patterns for _, part in pattern.items)
        shown = tuple(map(str, self.patterns[:SHOWN]))
        return GuardReading(shown, gate.tested, gate.dropped, gate.asleep, len(self.patterns), values)

    def _kept(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        if self._everything:
            return None
        if self._index is None:
            self._index = Index(self.patterns)
        ignored = self._index.match(rows)
        count = int(ignored.sum())
        if not count:
            return rows
        return None if count == rows.height else where(rows, ~ignored)


def _drops(message: Upstream) -> TypeGuard[Feedback]:
    return isinstance(message, Feedback) and message.intent is Intent.ASSUMED and not message.relayed


class Seen:
    """The punctuations that a sink has received. It forgets them when they are many, and are not bounds or ranges: a
    guard against tuples that they exclude then stays until the query ends."""

    __slots__ = ("_recent", "_set", "count")

    def __init__(self) -> None:
        self._set = PunctuationSet()
        self._recent: list[Punctuations] = []
        self.count = 0
        """Elements received."""

    def add(self, punctuations: Punctuations) -> None:
        self.count += 1
        self._recent.append(punctuations)
        if len(self._recent) >= MOST_RECENT:
            self.known()

    def known(self) -> PunctuationSet:
        """Return them as a set, to which the recent ones are added all at once."""
        if self._recent:
            if len(self._set) > MOST_SEEN:
                self._set = PunctuationSet()
            self._set.admit(Punctuations.concat(self._recent))
            self._recent = []
        return self._set

    def to_value(self) -> dict[str, Any]:
        return self.known().to_value()

    def restore(self, value: Any) -> None:
        self._set, self._recent, self.count = PunctuationSet.from_value(value), [], 0


class Ends:
    """When feedback that a reader has sent ends, each value of a list by itself. `schema`: that of the tuples."""

    def __init__(self, messages: Sequence[Upstream], schema: Schema) -> None:
        self.messages = messages
        self._said = [message for message in messages if isinstance(message, Feedback)]
        self._restricted = [each.pattern.attributes for each in self._said]
        self._bound = NEVER
        trails = schema.trails.items()
        self._trails = [item for item in trails if any(item[0] in names for names in self._restricted)]
        self.checked = -1
        """How much of the punctuation that a sink has seen they have been compared with."""

    @cached_property
    def _pieces(self) -> list[tuple[int, Pattern]]:
        return [(at, piece) for at, each in enumerate(self._said) for piece in pieces_of(each.pattern)]

    @cached_property
    def _times(self) -> list[tuple[Expression, list[tuple[Any, bool, int]]]]:
        return [(value, self._ends(name)) for name, value in self._trails]

    def _ends(self, name: str) -> list[tuple[Any, bool, int]]:
        """Return the upper ends of a column, in order, each with the number of its piece."""
        found: list[tuple[Any, bool, int]] = []
        for number, (_, piece) in enumerate(self._pieces):
            part = piece.get(name)
            if part.values or (part.form is Form.INTERVAL and part.hi is not None):
                found.append((max(part.values), True, number) if part.values else (part.hi, part.hi_closed, number))
        return sorted(found)

    def passed(self, bound: int) -> Sequence[int]:
        """Return the pieces that match only tuples below a bound on time."""
        if bound <= self._bound:
            return ()
        self._bound = bound
        if bound == FOREVER:
            return range(len(self._pieces))
        found: list[int] = []
        for value, ends in self._times if self._trails else ():
            limit = _value_at(value, bound)
            if limit is not None:
                found += (number for _, _, number in ends[: bisect_left(ends, (limit, True))])
        return found

    def covered(self, shapes: Iterable[frozenset[str]], known: Callable[[], PunctuationSet]) -> Sequence[int]:
        """Return the pieces that a set of punctuations covers, which restrict these attributes together."""
        shapes = [*shapes]
        near = {names for names in {*self._restricted} if any(shape <= names for shape in shapes)}
        if not near:
            return ()
        asked = [number for number, (at, _) in enumerate(self._pieces) if self._restricted[at] in near]
        covered = known().covered(Punctuations.of(self._pieces[number][1] for number in asked))
        return [asked[place] for place in covered.arg_true()]

    def without(self, numbers: Sequence[int]) -> tuple[list[Feedback], list[Pattern]]:
        """Return the feedback without these pieces, and what is gone of it."""
        gone: dict[int, set[int]] = {}
        for number in numbers:
            gone.setdefault(self._pieces[number][0], set()).add(number)
        held: dict[int, list[Pattern]] = {at: [] for at in gone}
        for number, (at, piece) in enumerate(self._pieces):
            if at in gone and number not in gone[at]:
                held[at].append(piece)
        left: list[Feedback] = []
        ended: list[Pattern] = []
        for at, message in enumerate(self._said):
            if at not in held:
                left.append(message)
                continue
            rest, lost = _narrowed(message.pattern, held[at])
            left += [] if rest is None else [replace(message, pattern=rest)]
            ended += lost
        return left, ended


def _narrowed(pattern: Pattern, pieces: Sequence[Pattern]) -> tuple[Pattern | None, list[Pattern]]:
    """Return a pattern without the values that none of the pieces has that are left, and the patterns of those."""
    if not pieces:
        return None, [pattern]
    own, lost = dict(pattern.items), []
    for name, part in pattern.items:
        kept = {value for piece in pieces for value in piece.get(name).values}
        if len(part.values) > 1 and len(kept) < len(part.values):
            lost.append(Pattern.of(own | {name: one_of({*part.values} - kept)}))
            own[name] = one_of(kept)
    return Pattern.of(own), lost


def _value_at(expression: Expression, bound: int) -> Any:
    """Return the value of an expression over the hidden timestamp; None if it is not known."""
    if not -FAR < bound < FAR:
        return None
    limit = limit_at(expression, bound)
    try:
        return None if limit is None else limit.cast(expression.type.polars).item()
    except (ValueError, OverflowError, pl.exceptions.PolarsError):  # no such year
        return None
