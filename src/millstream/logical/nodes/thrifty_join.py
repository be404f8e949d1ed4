"""A join that tells each side which of its tuples have no partner, once the other side is complete there.

Only an inner join may do that, without windows that count rows. It is a join by itself: joins of three streams or more
on a common key are not put into one operator.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.windowed import TwoWindowed


@dataclass(frozen=True, slots=True)
class ThriftyJoin(TwoWindowed):
    stem = "thrifty_join"

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return self.joined_offers(inputs, [part.drains for part in parts[:2]])
