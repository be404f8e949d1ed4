"""A join that tells each side which of its tuples have no partner, once the other side is complete there.

Only an inner join may do that, without windows that count rows. It is a join by itself: joins of three streams or more
on a common key are not put into one operator.

| what completes a side | the other side is told | its guard ends by |
|---|---|---|
| punctuation on single keys | these keys | its own punctuation on keys |
| upper bounds on a key | the bound, which replaces the one before | |
| time, where a key is at a fixed distance from it | ranges of the key | its own time, or upper bounds on the key |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.algebra.names import key_names
from millstream.algebra.punctuation.scheme import NO_FEEDBACK, FeedbackScheme, Scheme, covered
from millstream.algebra.punctuation.template import SINGLE, UP_TO, Template
from millstream.logical.contract.feedback import covering
from millstream.logical.contract.offers import Offers, Time, distinct
from millstream.logical.contract.requirements import Punctuated, Requirement
from millstream.logical.contract.state_parts import GUARDS, NONE_MOUNTED, StatePart, listed
from millstream.logical.nodes.kinds.windowed import TwoWindowed


@dataclass(frozen=True, slots=True)
class ThriftyJoin(TwoWindowed):
    stem = "thrifty_join"

    def feedback_sent(self, inputs: tuple[Offers, ...]) -> tuple[FeedbackScheme, ...]:
        told = (frozenset((*self._by_punctuation(side, inputs), *self._by_time(side, inputs))) for side in (0, 1))
        return tuple(Scheme(templates) if templates else NO_FEEDBACK for templates in told)

    def state_parts(self, inputs: tuple[Offers, ...]) -> tuple[StatePart, ...]:
        return (*TwoWindowed.state_parts(self, inputs), self._guards(inputs))

    def requirements(self, part: StatePart) -> Iterator[Requirement]:
        if part.name == GUARDS:
            yield Punctuated(self.inputs[part.side], self.keys_of(part.side))
        else:
            yield from TwoWindowed.requirements(self, part)

    def advice(self, part: StatePart, inputs: tuple[Offers, ...]) -> list[str]:
        return ["use JOIN, which sends no feedback"] if part.name == GUARDS else TwoWindowed.advice(self, part, inputs)

    def _guards(self, inputs: tuple[Offers, ...]) -> StatePart:
        """The guards against tuples without partners. Those that no later one replaces have to end."""
        bounds: list[str] = []
        for place, (own, offers) in enumerate(zip(self.sides, inputs, strict=True)):
            single = (t for t in self._by_punctuation(place, inputs) if SINGLE in dict(t.classes).values())
            told = [*single, *self._by_time(place, inputs)]
            ends = [t for t in covering(own.schema, offers).templates if t.attributes <= {*own.keys}]
            if not all(any(covered(each, end) for end in ends) for each in told):
                return StatePart(GUARDS, lacks=f"no punctuation of {own.label} closes {listed(own.keys)}", side=place)
            if told:
                bounds += [o.origin for o in offers.templates if o.template in ends] or offers.clocks
        return StatePart(GUARDS, tuple(dict.fromkeys(bounds)) or (NONE_MOUNTED,), rows=0)

    def _by_punctuation(self, side: int, inputs: tuple[Offers, ...]) -> tuple[Template, ...]:
        """What a side is told when punctuation completes the other one."""
        names = key_names(zip(self.keys_of(1 - side), self.keys_of(side), strict=True))
        return tuple(offer.template for offer in distinct(o.renamed(names) for o in inputs[1 - side].templates))

    def _by_time(self, side: int, inputs: tuple[Offers, ...]) -> tuple[Template, ...]:
        """What a side is told when time completes the other one."""
        times = self.sides[1 - side].schema.times if inputs[1 - side].time is not Time.STILL else {}
        pairs = zip(self.keys_of(side), self.keys_of(1 - side), strict=True)
        return tuple(Template(((own, UP_TO),)) for own, other in pairs if other in times)
