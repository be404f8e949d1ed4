"""Window join in which each tuple of a stream with KEY JOIN is in one result at most.

A condition of the join on one stream decides which tuples can pair, so it is pushed into that stream. A condition from
above stays above, unless it is on keys alone: a pair uses its tuples whether or not it satisfies the condition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.expression import Expression, conjuncts
from millstream.algebra.response import Reach, Rule
from millstream.algebra.window import Window
from millstream.logical.nodes.kinds.windowed import TwoWindowed, in_time
from millstream.logical.plan import Conditions, Pushed


@dataclass(frozen=True, slots=True)
class KeyJoin(TwoWindowed):
    """`once`: for each side, left and right, whether its tuples are in one result at most."""

    stem = "key_join"
    rules = (
        Rule("keys", Reach.EVERY, passes="the same, by key", relays=False),
        Rule("any other column", why="each tuple is used once: without it, another would be"),
    )
    positional = True

    once: tuple[bool, bool] = field(kw_only=True)

    @property
    def merges(self) -> bool:
        return in_time((side.schema for side in self.sides), (Window(rows=1),))

    def describe(self) -> str:
        names = [side.label for side, once in zip(self.sides, self.once, strict=True) if once]
        return f"KeyJoin {self._windows()}{self._on()}{self._where()} each {' and '.join(names)} once"

    def push(self, conditions: Conditions) -> Pushed:
        sifters = self.sifters(self.equal)
        keys = {name for names in self.equal for name in names}

        def on_keys(condition: Expression) -> bool:
            if not condition.columns() or not condition.columns() <= keys or any(s.side.rows for s in sifters):
                return False
            return all(sifter.take(condition) for sifter in sifters)

        inside = [c for c in conjuncts(self.residual) if not on_keys(c) and not any(s.take(c) for s in sifters)]
        above = [c for c in conditions if not on_keys(c)]
        return self.sifted(sifters, inside, above)

    def parameters(self) -> dict[str, Any]:
        return TwoWindowed.parameters(self) | self.values("once")
