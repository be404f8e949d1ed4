"""What a rule may know beside the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.logical.catalog import Catalog
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class Context:
    catalog: Catalog | None = None
    paned: bool = True
    multi_join: str = "auto"

    def punctuated(self, stream: str) -> frozenset[str]:
        """The columns that punctuation of the stream may restrict."""
        return frozenset() if self.catalog is None else self.catalog.punctuated(stream)


Rule = Callable[[Plan, Context], Plan]


def bottom_up(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The plan with `change` applied to every node, inputs first."""
    inputs = tuple(bottom_up(input_, change) for input_ in plan.inputs)
    return change(plan.with_inputs(inputs) if inputs != plan.inputs else plan)
