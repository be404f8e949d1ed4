"""A join that tells its right side which keys the left side holds: their tuples are wanted first.

That is desired feedback, which drops nothing and mounts no guard; readers remember the latest messages of it alone. In
contracts, whose feedback is assumed feedback, it therefore sends none.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.windowed import TwoWindowed


@dataclass(frozen=True, slots=True)
class ImpatientJoin(TwoWindowed):
    stem = "impatient_join"

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return self.joined_offers(inputs, [part.drains for part in parts[:2]])
