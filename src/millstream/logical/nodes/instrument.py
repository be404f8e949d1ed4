"""A stream, unchanged, that sends feedback to its producer: for tests and measurements of feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.algebra.feedback import Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.response import Rule
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.plan import Names, Need, Plan


@dataclass(frozen=True, slots=True)
class Instrument(Stateless, Passing):
    """The tuples of `input`. `intent` and `pattern` are the feedback, sent after every `every` tuples that a shard has
    received, or once at the start if that is None. Without `sends` it only counts."""

    stem = "instrument"
    rules = (Rule("any column", why="it counts the tuples that it receives"),)

    input: Plan
    intent: str
    pattern: Pattern
    every: int | None
    sends: bool = True

    @property
    def stands(self) -> bool:
        """True if it ignores the tuples that match from the start."""
        return self.sends and self.every is None and self.intent == Intent.ASSUMED.value

    def describe(self) -> str:
        when = "once" if self.every is None else f"every {self.every} tuples"
        return f"Instrument {self.intent}{self.pattern} {when}{'' if self.sends else ', not sent'}"

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        return self, (Need(kept | self.pattern.attributes),)

    def parameters(self) -> dict[str, Any]:
        return self.values("schema", "intent", "pattern", "every", "sends", "stands")
