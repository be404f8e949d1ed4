"""Feedback: a reader tells the producers of its input which tuples it does not want.

Assumed feedback `~[…]` is a promise of the reader: it ignores all tuples that match the pattern. So each producer may
omit them, may omit whatever leads to them alone, or may do nothing. What it must not do is emit a tuple that it would
not emit without the feedback.

Each reader of a buffer that has received or sent feedback drops matching tuples itself, by a guard. The guard at the
top of a query is what the sender of the feedback sees: no matching row is emitted from then on. Guards further down
only save work.

>>> from millstream.algebra.punctuation.restriction import below, equal
>>> said = Feedback(Intent.ASSUMED, Pattern.of(ts=below(10)))
>>> str(said), said.at_fork([[]]) is None
('~[ts < 10]', True)
>>> str(said.at_fork([[Feedback(Intent.ASSUMED, Pattern.of(k=equal(5)))]]))
'~[k = 5, ts < 10]'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from math import prod
from typing import ClassVar

from millstream.algebra.punctuation.common import MOST_VALUES
from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.schema import Schema
from millstream.algebra.upstream import Answer, Upstream
from millstream.algebra.values import record, value
from millstream.errors import PatternError

MOST_DESIRED = 256
"""Most patterns of desired feedback that a reader, or an operator with pending work, remembers: it is a hint, and the
latest one counts."""


@value("intent")
class Intent(Enum):
    ASSUMED = "~"
    """The reader ignores matching tuples."""
    DESIRED = "?"
    """The reader wants matching tuples first."""
    DEMANDED = "!"
    """The reader wants results for matching tuples now."""


@record("feedback")
class Feedback(Upstream):
    """An intent, and a pattern over the output columns of the operator that receives it."""

    remembered: ClassVar[bool] = True
    first: ClassVar[bool] = True

    intent: Intent
    pattern: Pattern
    relayed: bool = False
    """True if its sender passes it on for its own readers, and does not drop matching tuples itself."""

    def unanswered(self, arity: int) -> Answer:  # noqa: ARG002
        return Answer()

    def at_fork(self, others: Sequence[Sequence[Upstream]]) -> Upstream | None:
        """Only what all readers ignore; what any reader desires, or demands."""
        if self.intent is not Intent.ASSUMED:
            return self
        pattern = self.pattern
        for sent in others:
            ignored = [each.pattern for each in sent if isinstance(each, Feedback) and each.intent is self.intent]
            common = [pattern] if any(p.covers(pattern) for p in ignored) else [pattern.intersect(p) for p in ignored]
            wanted_by_none = [p for p in common if not p.is_empty]
            if not wanted_by_none:
                return None
            pattern = wanted_by_none[0]
        return self if pattern is self.pattern else replace(self, pattern=pattern)

    def covers(self, other: Feedback) -> bool:
        """True if the other one says nothing that this one does not."""
        acts = other.relayed or not self.relayed
        return self.intent is other.intent and acts and self.pattern.covers(other.pattern)

    def __str__(self) -> str:
        return f"{self.intent.value}{self.pattern}"


def added(messages: Sequence[Feedback], new: Feedback) -> list[Feedback]:
    """Return messages with a new one, in place of those that it covers, without the oldest of too many desired ones.
    Assumed feedback is merged with one that differs in the values, or the range, of one column.

    >>> from millstream.algebra.punctuation.restriction import equal
    >>> said = [Feedback(Intent.ASSUMED, Pattern.of(k=equal(value))) for value in (1, 2)]
    >>> [str(each) for each in added(said[:1], said[1])]
    ['~[k {1, 2}]']
    """
    kept = [each for each in messages if not new.covers(each)]
    if new.intent is Intent.ASSUMED:
        for each in kept:
            if each.intent is new.intent and each.relayed is new.relayed:
                both = each.pattern.union(new.pattern)
                if both is not None and prod(len(part.values) or 1 for _, part in both.items) <= MOST_VALUES:
                    return added([other for other in kept if other is not each], replace(new, pattern=both))
    desired = [each for each in kept if each.intent is Intent.DESIRED] if new.intent is Intent.DESIRED else []
    if len(desired) >= MOST_DESIRED:
        kept.remove(desired[0])
    return [*kept, new]


@record("withdrawal")
class Withdrawal(Upstream):
    """Punctuation has reached the sender of feedback that covers this pattern: no guard needs it any more."""

    first: ClassVar[bool] = True

    pattern: Pattern

    def unanswered(self, arity: int) -> Answer:  # noqa: ARG002
        return Answer()

    def at_fork(self, others: Sequence[Sequence[Upstream]]) -> Upstream | None:  # noqa: ARG002
        return self


def parse_feedback(text: str, schema: Schema) -> Feedback:
    """Parse feedback on the rows of a query; raise PatternError if it is malformed or does not fit the schema.

    >>> from millstream.algebra.types import Type
    >>> print(parse_feedback("~[auction = 5]", Schema.of(("auction", Type.BIGINT))))
    ~[auction = 5]

    `[*]` is every row.
    """
    sign, rest = text.strip()[:1], text.strip()[1:]
    if sign == "¬":
        sign = "~"
    if sign not in {intent.value for intent in Intent}:
        hint = "write ~[…] for rows that are not wanted"
        raise PatternError("M4011", "feedback starts with ~, ? or !", detail=f"In {text}", hint=hint)
    written = "".join(rest.split())
    if written == "[]":
        hint = f"write {sign}[*] for every row"
        raise PatternError("M4011", f"{sign}[] restricts no column", hint=hint)
    return Feedback(Intent(sign), Pattern() if written == "[*]" else parse_pattern(rest, schema))
