"""Strategies as a library of transition macros.

After each execution step the macro of the current operator decides where control goes, from two facts: whether the
operator has something for its successor (`forward`) and whether it can take more input (`more`). The order in which
they are asked is the whole difference between the strategies. The suffix of a macro's name is the operator's place:
`Source` (nothing before it to go back to), `Sink` (an output wrapper or a break after it, so it never goes forward),
both, or neither (`NOS`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from millstream.errors import OptionError, did_you_mean


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


def _without_forward(macro: Macro) -> Macro:
    return lambda forward, more, count, k: macro(False, more, count, k)  # noqa: ARG005


_RULES: dict[str, Macro] = {"DFS": depth_first, "BFS": breadth_first, "RR": round_robin, "KB": batched}

MACROS: dict[str, Macro] = {
    f"{prefix}-{place}": _without_forward(rule) if "Sink" in place else rule
    for prefix, rule in _RULES.items()
    for place in ("NOS", "Source", "Sink", "Source-Sink")
}

_SPELLINGS = {
    "dfs": "DFS",
    "bfs": "BFS",
    "rr": "RR",
    "round_robin": "RR",
    "kb": "KB",
    "batch": "KB",
    "k_batch": "KB",
}


@dataclass(frozen=True, slots=True)
class Strategy:
    """A rule set by its prefix in the macro library, and the batch size where it has one.

    >>> Strategy.parse("bfs"), str(Strategy.parse("batch", k=5))
    (Strategy(prefix='BFS', k=1), 'KB(5)')
    """

    prefix: str
    k: int = 1

    @classmethod
    def parse(cls, text: str, *, k: int = 1) -> Strategy:
        """A strategy from its name; `batch:5` gives the batch size along with it."""
        name, _, size = text.strip().lower().partition(":")
        if name not in _SPELLINGS:
            raise OptionError("M6030", f"unknown strategy '{text}'", hint=did_you_mean(name, _SPELLINGS))
        if size and not size.isdigit():
            raise OptionError("M6031", f"batch size '{size}' is not a number")
        k = int(size) if size else k
        if k < 1:
            raise OptionError("M6031", f"a batch has at least one element, not {k}")
        return cls(_SPELLINGS[name], k)

    def macro_name(self, place: str) -> str:
        return f"{self.prefix}-{place}"

    def __str__(self) -> str:
        return f"KB({self.k})" if self.prefix == "KB" else self.prefix


DFS = Strategy("DFS")
BFS = Strategy("BFS")
RR = Strategy("RR")
