"""Strategies as a library of transition macros.

After each execution step the macro of the current operator chooses the next one, from two facts: whether the operator
has output for its successor (`forward`) and whether it can take more input (`more`). The strategies differ only in the
order in which they test them. The suffix of a macro's name is the operator's place: `Source` (no operator before it to
go back to), `Sink` (a sink or a break after it, so it never goes forward), both, or neither (`NOS`).

A package adds a `RuleSet` by an entry point in the group `millstream.strategies`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum, auto

from millstream.errors import OptionError, did_you_mean
from millstream.registry import Registry


class Action(Enum):
    FORWARD = auto()
    ENCORE = auto()
    RESTART = auto()
    """Continue with the same operator and start a new batch."""
    BACKTRACK = auto()
    """Go back to the previous operator; at a source, ask it for a timestamp or return control to the scheduler."""
    EXIT = auto()


MOST_PAGES = 1_000_000
"""Greatest batch size."""
Macro = Callable[[bool, bool, int, int], Action]
"""(forward, more, pages taken since the operator got control, batch size) -> action"""


def depth_first(forward: bool, more: bool, count: int, k: int) -> Action:  # noqa: ARG001
    if forward:
        return Action.FORWARD
    return Action.ENCORE if more else Action.BACKTRACK


def breadth_first(forward: bool, more: bool, count: int, k: int) -> Action:  # noqa: ARG001
    if more:
        return Action.ENCORE
    return Action.FORWARD if forward else Action.BACKTRACK


def round_robin(forward: bool, more: bool, count: int, k: int) -> Action:  # noqa: ARG001
    if more:
        return Action.ENCORE
    return Action.FORWARD if forward else Action.EXIT


def batched(forward: bool, more: bool, count: int, k: int) -> Action:
    """Depth first, k pages at a time. Another batch follows one that produced no output."""
    if more and count < k:
        return Action.ENCORE
    if forward:
        return Action.FORWARD
    return Action.RESTART if more else Action.BACKTRACK


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The registered rules of a strategy. The macro may go forward only if the successor has input, and encore or
    restart only if there is more."""

    prefix: str
    """The prefix of its macros' names."""
    macro: Macro
    sized: bool = False
    """True if it takes a batch size, as in `batch:16`."""
    paths: bool = False
    """True if the graph has to be cut into paths. Only then may the macro exit."""


STRATEGIES = Registry(
    "millstream.strategies",
    {
        "dfs": RuleSet("DFS", depth_first),
        "bfs": RuleSet("BFS", breadth_first),
        "rr": RuleSet("RR", round_robin, paths=True),
        "batch": RuleSet("KB", batched, sized=True),
    },
    fits=lambda thing: isinstance(thing, RuleSet),
)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A rule set, and the batch size if it takes one.

    >>> strategy = Strategy.parse("batch:5")
    >>> strategy.rules.prefix, strategy.k, strategy.rules.paths
    ('KB', 5, False)
    """

    rules: RuleSet
    k: int = 1

    @classmethod
    def parse(cls, text: str) -> Strategy:
        """Return the strategy of a name, with the batch size if it takes one: `dfs`, `batch:5`."""
        name, colon, size = text.strip().lower().partition(":")
        rules = STRATEGIES.get(name)
        if rules is None:
            raise OptionError("M6030", f"unknown strategy '{text}'", hint=did_you_mean(name, STRATEGIES.names()))
        if bool(colon) != rules.sized:
            wanted = f"needs a batch size, as in '{name}:16'" if rules.sized else "takes no batch size"
            raise OptionError("M6031", f"strategy '{name}' {wanted}")
        if not colon:
            return cls(rules)
        if not is_number(size) or not 1 <= int(size) <= MOST_PAGES:
            raise OptionError("M6031", f"batch size '{size}' is not a number from 1 to {MOST_PAGES}")
        return cls(rules, int(size))

    def macro(self, *, last: bool) -> Macro:
        """Return the macro of an operator; the last one before a sink or a break never goes forward."""
        rule = self.rules.macro
        return (lambda forward, more, count, k: rule(False, more, count, k)) if last else rule  # noqa: ARG005


def is_number(text: str) -> bool:
    """Return whether a text consists of a few ASCII digits."""
    return text.isascii() and text.isdecimal() and len(text) < 10


def strategies() -> str:
    """Return the possible strategies, for messages.

    >>> strategies()
    'dfs, bfs, rr, batch:K'
    """
    sized = {name for name, rules in STRATEGIES.known.items() if rules.sized}
    return ", ".join(f"{name}:K" if name in sized else name for name in STRATEGIES.names())


DFS = Strategy.parse("dfs")

Owner = tuple[str, str]
"""An operator of a query as `EXPLAIN PHYSICAL` shows it: the query, and the operator's label."""


@dataclass(frozen=True, slots=True)
class Place:
    """Operators of running queries: `union` (all of a kind), `select 2` (one of them in each query), `q.union` (of one
    query).

    >>> Place.parse("q.select 2").covers(("q", "Select 2")), Place.parse("select").covers(("q", "Select 2"))
    (True, True)
    >>> Place.parse("select 1").covers(("q", "Select")), Place.parse("p.select").covers(("q", "Select"))
    (True, False)
    """

    query: str | None
    kind: str
    number: int | None = None

    @classmethod
    def parse(cls, text: str) -> Place:
        query, dot, operator = text.strip().lower().rpartition(".")
        kind, _, number = operator.partition(" ")
        numbered = is_number(number) and int(number) > 0
        if not kind.isidentifier() or (dot and not query) or (number and not numbered):
            raise OptionError("M6035", f"'{text.strip()}' names no operator", hint="such as union, or q.select 2")
        return cls(query or None, kind, int(number) if number else None)

    def covers(self, owner: Owner) -> bool:
        kind, _, number = owner[1].lower().partition(" ")
        return self.query in (None, owner[0]) and self.kind == kind and self.number in (None, int(number or 1))

    def __str__(self) -> str:
        operator = self.kind if self.number is None else f"{self.kind} {self.number}"
        return operator if self.query is None else f"{self.query}.{operator}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The strategy of every operator, and the operators with a break behind them.

    >>> schedule = Schedule.parse("batch:16; union: bfs; q.union: rr", "q.select 2")
    >>> [schedule.strategy([(query, "Union")]).rules.prefix for query in "pq"]
    ['BFS', 'RR']
    >>> schedule.breaks([("q", "Select")]), schedule.breaks([("q", "Select 2")])
    (False, True)
    """

    default: Strategy
    rules: tuple[tuple[Place, Strategy], ...] = ()
    broken: tuple[Place, ...] = ()

    @classmethod
    def parse(cls, strategy: str, breaks: str = "") -> Schedule:
        """Parse a strategy for all operators, then strategies of some (`place: strategy`), separated by `;`; and the
        places of breaks."""
        first, *rest = strategy.split(";")
        rules: list[tuple[Place, Strategy]] = []
        for rule in filter(str.strip, rest):
            place, colon, name = rule.partition(":")
            if not colon:
                raise OptionError("M6035", f"'{rule.strip()}' gives no operator a strategy", hint="such as union: bfs")
            rules.append((Place.parse(place), Strategy.parse(name)))
        broken = tuple(map(Place.parse, filter(str.strip, breaks.split(";"))))
        return cls(Strategy.parse(first), tuple(rules), broken)

    @property
    def places(self) -> tuple[Place, ...]:
        return (*(place for place, _ in self.rules), *self.broken)

    def new_places(self, before: Schedule) -> list[Place]:
        """Return the places that another schedule does not name."""
        return [place for place in self.places if place not in before.places]

    def strategy(self, owners: Collection[Owner]) -> Strategy:
        """Return the strategy of an operator that these queries share: that of the last rule which covers it."""
        fitting = [strategy for place, strategy in self.rules if any(map(place.covers, owners))]
        return fitting[-1] if fitting else self.default

    def breaks(self, owners: Collection[Owner]) -> bool:
        """Return whether there is a break behind an operator that these queries share."""
        return any(place.covers(owner) for place in self.broken for owner in owners)
