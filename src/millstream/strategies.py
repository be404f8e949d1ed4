"""Strategies as a library of transition macros.

After each execution step the macro of the current operator chooses the next one, from two facts: whether the operator
has output for its successor (`forward`) and whether it can take more input (`more`). The strategies differ only in the
order in which they test them. The suffix of a macro's name is the operator's place: `Source` (no operator before it to
go back to), `Sink` (a sink or a break after it, so it never goes forward), both, or neither (`NOS`).

A package adds a `RuleSet` by an entry point in the group `millstream.strategies`.
"""

from __future__ import annotations

from collections.abc import Callable
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
        if not size.isdecimal() or int(size) < 1:
            raise OptionError("M6031", f"batch size '{size}' is not a number of at least 1")
        return cls(rules, int(size))

    def macro(self, *, last: bool) -> Macro:
        """Return the macro of an operator; the last one before a sink or a break never goes forward."""
        rule = self.rules.macro
        return (lambda forward, more, count, k: rule(False, more, count, k)) if last else rule  # noqa: ARG005


def strategies() -> str:
    """Return the possible strategies, for messages.

    >>> strategies()
    'dfs, bfs, rr, batch:K'
    """
    sized = {name for name, rules in STRATEGIES.known.items() if rules.sized}
    return ", ".join(f"{name}:K" if name in sized else name for name in STRATEGIES.names())


DFS = Strategy.parse("dfs")
