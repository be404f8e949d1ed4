"""Outer join of two streams.

Dropping a tuple before the join drops its results, padded or not; dropping its partners pads it instead. So a condition
on the result goes into the side that is kept, if only one is; of what the join itself asks, a condition on the side
that is not kept goes into that side; all else stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.expression import conjuncts
from millstream.algebra.names import Groups, equal_classes
from millstream.logical.contract.offers import Offers, Time, distinct, slowest
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.windowed import TwoWindowed
from millstream.logical.plan import Conditions, Key, Pushed, subsets


@dataclass(frozen=True, slots=True)
class OuterJoin(TwoWindowed):
    """A window join that also puts out the tuples of the `kept` side (LEFT, RIGHT, or both: FULL) that find no partner,
    with NULLs in the other side's columns and the tuple's own timestamp.

    Such a row comes when no partner can come any more, so the output is not in the order of time.
    """

    stem = "outer_join"

    kept: str = field(kw_only=True)

    @property
    def preserved(self) -> tuple[bool, bool]:
        return self.kept in ("LEFT", "FULL"), self.kept in ("RIGHT", "FULL")

    def describe(self) -> str:
        on = self._on()
        asked = "" if self.residual is None else f" {'AND' if on else 'ON'} {self.residual}"
        return f"OuterJoin {self.kept} {self._windows()}{on}{asked} {self._order()}"

    def push(self, conditions: Conditions) -> Pushed:
        sifters = self.sifters(())
        alone = [sifter for sifter, other in zip(sifters, self.preserved[::-1], strict=True) if not other]
        lost = [sifter for sifter, kept in zip(sifters, self.preserved, strict=True) if not kept]
        above = [c for c in conditions if not any(sifter.take(c) for sifter in alone)]
        inside = [c for c in conjuncts(self.residual) if not any(sifter.take(c) for sifter in lost)]
        return self.sifted(sifters, inside, above)

    @property
    def equal_columns(self) -> Groups:
        """Keys differ where one side is padded."""
        return equal_classes(group for side in self.sides for group in side.groups)

    def hash_keys(self) -> Iterable[Key]:
        return subsets(self._kept_keys())

    def keys_below(self, key: Key) -> list[Key] | None:
        pairs = dict(zip(self._kept_keys(), self.keys, strict=True))
        if not all(name in pairs for name in key):
            return None
        return [tuple(pairs[name][place] for name in key) for place in (0, 1)]

    def _kept_keys(self) -> list[str]:
        """What the output hashed on a key is called: the column of the side that is kept, which is never padded. With
        both sides kept there is none, and a name that is no column's, which no operator above can ask for."""
        place = {"LEFT": 0, "RIGHT": 1}.get(self.kept)
        return [" = ".join(pair) if place is None else pair[place] for pair in self.equal]

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        """Padded rows escape the templates of the other side, and wait for a tuple of a kept side to leave."""
        sides, kept, leave = self.sides, self.preserved, [part.empties for part in parts[:2]]
        found = [
            inputs[place].renamed(sides[place].names).templates
            for place in (0, 1)
            if kept[place] and not kept[1 - place] and leave[place]
        ]
        time, clocks = slowest(inputs)
        if not all(free for free, side in zip(leave, sides, strict=True) if side.preserved):
            time, clocks = Time.STILL, ()
        return Offers(time, clocks, distinct(offer for offers in found for offer in offers))

    def parameters(self) -> dict[str, Any]:
        return TwoWindowed.parameters(self) | self.values("preserved")
