"""The context of a rule: catalog and options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from millstream.logical.catalog import Catalog
from millstream.logical.contract.offers import Declarations
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class Context:
    catalog: Catalog = field(default_factory=Catalog)
    paned: bool = True
    multi_join: str = "auto"
    declarations: Declarations | None = None
    accumulators: str = "auto"

    @property
    def declared(self) -> Declarations:
        """What the streams promise."""
        return self.declarations or Declarations.of(self.catalog)


Rule = Callable[[Plan, Context], Plan]


def bottom_up(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Return the plan with `change` applied to every node, inputs first."""
    inputs = tuple(bottom_up(input_, change) for input_ in plan.inputs)
    return change(plan.with_inputs(inputs) if inputs != plan.inputs else plan)
