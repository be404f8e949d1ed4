"""A plan's contract: the state and the promises of each operator, derived from the scans upward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from millstream.logical.contract.offers import Declarations, Offers
from millstream.logical.contract.state_parts import WAITING, StatePart
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class Contract:
    """A node of the plan with its number, the parts of its state, and what it promises the node above."""

    plan: Plan
    number: int
    parts: tuple[StatePart, ...]
    offers: Offers
    inputs: tuple[Contract, ...]

    def walk(self) -> Iterator[Contract]:
        """All nodes, inputs before the nodes that read them."""
        for input_ in self.inputs:
            yield from input_.walk()
        yield self

    def unbounded(self) -> dict[tuple[int, str], StatePart]:
        """The unbounded parts, by node number and part name."""
        return {(node.number, part.name): part for node in self.walk() for part in node.parts if not part.bounded}


def check(plan: Plan, declarations: Declarations) -> Contract:
    """Return the contract of a plan; nodes have the numbers that `EXPLAIN` gives them."""
    return _check(plan, declarations, count(1))


def _check(plan: Plan, declarations: Declarations, numbers: Iterator[int]) -> Contract:
    inputs = tuple(_check(input_, declarations, numbers) for input_ in plan.inputs)
    offered = (declarations.offers(plan),) if isinstance(plan, Scan) else tuple(input_.offers for input_ in inputs)
    parts = plan.state_parts(offered)
    # Where tuples wait for ever, the punctuation behind them does too.
    stuck = any(part.name == WAITING and not part.bounded for part in parts)
    offers = Offers() if stuck else plan.passes_on(offered, parts)
    return Contract(plan, next(numbers), parts, offers, inputs)
