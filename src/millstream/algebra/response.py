"""Responses to feedback, as data: what an operator does if results that match a pattern are not wanted.

A node lists its rules (`Plan.rules`), beside its other properties; the first that applies to a pattern is its
response. Planner, engine, `EXPLAIN FEEDBACK` and the table in `docs/feedback.md` read the same rules.

Whatever the rule, the reader above drops matching results: that alone is correct for every operator. A rule says what
the operator does beyond it: it guards inputs, purges what it holds, and passes patterns on.

>>> rule = Rule("any column", Reach.EVERY, passes="the same")
>>> rule.guards, Rule("a value", why="it may change").guards
('its input', 'its output')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from millstream.algebra.punctuation.pattern import Pattern


class Reach(Enum):
    """The inputs that a rule speaks of."""

    EVERY = "every input"
    SOME = "some inputs"
    NONE = "no input"
    WATCHED = "single groups, as they are found"


@dataclass(frozen=True, slots=True)
class Rule:
    """`when`: the patterns that it is for. `reach`: which inputs may omit tuples. `purges`: what it drops of its state.
    `passes`: what it passes on. `relays`: passing on is correct also if the operator itself does nothing. `why`: the
    reason, where inputs may omit nothing."""

    when: str
    reach: Reach = Reach.NONE
    purges: str = ""
    passes: str = ""
    relays: bool = True
    why: str = ""

    @property
    def guards(self) -> str:
        """What it guards beyond its output, which the reader above guards."""
        texts = {Reach.EVERY: "its input", Reach.SOME: "that input", Reach.WATCHED: "its output, then its input"}
        return texts.get(self.reach, "its output")

    @property
    def atomic(self) -> bool:
        """True if guard and purge are one step: one without the other would emit wrong results."""
        return bool(self.purges) and not self.relays


@dataclass(frozen=True, slots=True)
class Response:
    """The rule that applies, and what it comes to for a pattern. `omitted`: for each input, the tuples that it may
    omit. `watched`: a pattern that a result keeps matching once it does, so that single groups can be given up.
    `parts`: patterns that match the same results, and that it responds to one by one."""

    rule: Rule
    omitted: tuple[Pattern | None, ...]
    watched: Pattern | None = None
    parts: tuple[Pattern, ...] = ()

    def __bool__(self) -> bool:
        """True if the operator does more than its reader, which drops the results."""
        return self.watched is not None or any(pattern is not None for pattern in self.omitted)


Respond = Callable[[Pattern], Response]
"""Returns the response of an operator to a pattern over its output."""

UNKNOWN = Rule("any other column", why="no rule is known")


def applying(rules: Iterable[Rule], omitted: Sequence[Pattern | None], watched: Pattern | None = None) -> Rule:
    """Return the first rule for which these inputs, or watched groups, are the ones that it speaks of."""
    told = sum(pattern is not None for pattern in omitted)
    if watched is not None:
        reach = {Reach.WATCHED}
    elif not told:
        reach = {Reach.NONE}
    else:
        reach = {Reach.EVERY, Reach.SOME} if told == len(omitted) else {Reach.SOME}
    return next((rule for rule in rules if rule.reach in reach), UNKNOWN)
