"""Outer join of two streams.

Dropping a tuple before the join drops its results, padded or not; dropping its partners pads it instead. So a condition
on the result is pushed into the kept side, if only one side is kept. A condition of the join itself that reads only a
side that is not kept is pushed into that side. All others stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.expression import conjuncts
from millstream.algebra.names import Groups, equal_classes
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.response import Reach, Rule
from millstream.logical.contract.offers import Offer, Offers, distinct, slowest
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.disclaimed import Omitted
from millstream.logical.nodes.kinds.windowed import TwoWindowed
from millstream.logical.plan import Conditions, Key, Pushed, subsets


@dataclass(frozen=True, slots=True)
class OuterJoin(TwoWindowed):
    """A window join that also emits the tuples of the `kept` side (LEFT, RIGHT, or both: FULL) that find no partner,
    with NULLs in the other side's columns and the tuple's own timestamp.

    Such a row is emitted when no partner can come any more, so the output is not in timestamp order.
    """

    stem = "outer_join"
    rules = (
        Rule(
            "keys of the kept input, if the other is not kept",
            Reach.EVERY,
            purges="stored tuples that match, of both inputs",
            passes="the same, by key",
        ),
        Rule(
            "columns of the kept input, if the other is not kept",
            Reach.SOME,
            purges="stored tuples of that input that match",
            passes="the same, to that input",
        ),
        Rule("any other column", why="without a tuple its partner would be padded, and padded rows are wanted"),
    )
    holds_time = True

    kept: str = field(kw_only=True)

    @property
    def preserved(self) -> tuple[bool, bool]:
        return self.kept in ("LEFT", "FULL"), self.kept in ("RIGHT", "FULL")

    def describe(self) -> str:
        on = self._on()
        residual = "" if self.residual is None else f" {'AND' if on else 'ON'} {self.residual}"
        return f"OuterJoin {self.kept} {self._windows()}{on}{residual} {self._order()}"

    def push(self, conditions: Conditions) -> Pushed:
        sifters = self.sifters(())
        never_padded = [sifter for sifter, other in zip(sifters, self.preserved[::-1], strict=True) if not other]
        not_kept = [sifter for sifter, kept in zip(sifters, self.preserved, strict=True) if not kept]
        above = [c for c in conditions if not any(sifter.take(c) for sifter in never_padded)]
        inside = [c for c in conjuncts(self.residual) if not any(sifter.take(c) for sifter in not_kept)]
        return self.sifted(sifters, inside, above)

    def disclaimed(self, pattern: Pattern) -> Omitted:
        """If results with a key of the kept side are unwanted, padded or not, the other side may omit that key too."""
        below = [*TwoWindowed.disclaimed(self, pattern)]
        place = {"LEFT": 0, "RIGHT": 1}.get(self.kept)
        if place is not None and pattern.items and not self.positional:
            names = {pair[place]: own for pair, own in zip(self.equal, self.keys_of(1 - place), strict=True)}
            if pattern.attributes <= names.keys():
                below[1 - place] = pattern.rename(names)
        return tuple(below)

    @property
    def equal_columns(self) -> Groups:
        """Only those of each side: the keys differ where one side is padded."""
        return equal_classes(group for side in self.sides for group in side.groups)

    def hash_keys(self) -> Iterable[Key]:
        return subsets(self._kept_keys())

    def keys_below(self, key: Key) -> list[Key] | None:
        pairs = dict(zip(self._kept_keys(), self.keys, strict=True))
        if not all(name in pairs for name in key):
            return None
        return [tuple(pairs[name][place] for name in key) for place in (0, 1)]

    def _kept_keys(self) -> list[str]:
        """The output's names of the keys, for hashing: the columns of the kept side, which is never padded. If both
        sides are kept, names that are no columns, so that no operator above can ask for them."""
        place = {"LEFT": 0, "RIGHT": 1}.get(self.kept)
        return [" = ".join(pair) if place is None else pair[place] for pair in self.equal]

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        """Padded rows violate the templates of the other side, and appear when a tuple of a kept side is purged."""
        drains = [part.drains for part in parts[:2]]
        templates: tuple[Offer, ...] = ()
        named = [offers.renamed(side.names) for side, offers in zip(self.sides, inputs, strict=True)]
        references = distinct(each for offers in named for each in offers.references)
        for place, side in enumerate(self.sides):
            if side.preserved and not self.preserved[1 - place] and drains[place]:
                templates = named[place].templates
        if not all(drained for drained, kept in zip(drains, self.preserved, strict=True) if kept):
            return Offers(templates=templates, references=references)
        return Offers(*slowest(inputs), templates, references)

    def parameters(self) -> dict[str, Any]:
        return TwoWindowed.parameters(self) | self.values("preserved")
