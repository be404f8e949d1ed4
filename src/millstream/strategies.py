"""Strategies as a library of transition macros.

After each execution step the macro of the current operator decides where control goes, from two facts: whether the
operator has something for its successor (`forward`) and whether it can take more input (`more`). The order in which
they are asked is the whole difference between the strategies. The suffix of a macro's name is the operator's place:
`Source` (nothing before it to go back to), `Sink` (an output wrapper or a break after it, so it never goes forward),
both, or neither (`NOS`).

What a package brings is a `RuleSet` in the entry points `millstream.strategies`. Options are checked against them and
graphs run them, so they stand below both.
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
    """Go on with the same operator and begin a new batch."""
    BACKTRACK = auto()
    """Go to the operator before; at a source, ask it for a timestamp or give control back."""
    EXIT = auto()


Macro = Callable[[bool, bool, int, int], Action]
"""(forward, more, elements taken in this visit, batch size) -> action"""


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
    """Depth first, k elements at a time. A batch that was filtered out altogether is followed by another one."""
    if more and count < k:
        return Action.ENCORE
    if forward:
        return Action.FORWARD
    return Action.RESTART if more else Action.BACKTRACK


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a strategy, as they are registered. The macro must go forward only if there is something to take
    there, and encore or restart only if there is more."""

    prefix: str
    """How the names of its macros begin."""
    macro: Macro
    sized: bool = False
    """Whether a batch size belongs to it, as in `batch:16`."""
    paths: bool = False
    """Whether it works on paths: the graph is cut into such. Only then may the macro exit."""


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
    """A rule set, and the batch size where it has one.

    >>> made = Strategy.parse("batch:5")
    >>> made.macro_name("Sink"), made.k, made.rules.paths
    ('KB-Sink', 5, False)
    """

    rules: RuleSet
    k: int = 1

    @classmethod
    def parse(cls, text: str) -> Strategy:
        """A strategy from its name, with the batch size if it takes one: `dfs`, `batch:5`."""
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

    def macro_name(self, place: str) -> str:
        return f"{self.rules.prefix}-{place}"

    def macro(self, *, last: bool) -> Macro:
        """The macro of an operator; the last one before a sink or a break never goes forward."""
        rule = self.rules.macro
        return (lambda forward, more, count, k: rule(False, more, count, k)) if last else rule  # noqa: ARG005


def strategies() -> str:
    """What a strategy can be, for messages.

    >>> strategies()
    'dfs, bfs, rr, batch:K'
    """
    sized = {name for name, rules in STRATEGIES.known.items() if rules.sized}
    return ", ".join(f"{name}:K" if name in sized else name for name in STRATEGIES.names())


DFS = Strategy.parse("dfs")
