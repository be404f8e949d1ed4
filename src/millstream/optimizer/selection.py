"""Selection push-down: filter as early as the meaning allows.

    Select (b.price > 5)                      WindowJoin b, a ON b.auction = a.id
    └─ WindowJoin b, a ON b.auction = a.id    ├─ Select (price > 5)
       ├─ Scan bids                      →    │  └─ Scan bids
       └─ Scan auctions                       └─ Scan auctions

Each node says which conjuncts on its result go into which of its inputs, and which it can test itself (`Plan.push`);
what is left stays above it.
"""

from __future__ import annotations

from millstream.algebra.expression import conjunction, conjuncts
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Conditions, Plan, each_once
from millstream.optimizer.context import Context


def push_selections(plan: Plan, context: Context) -> Plan:
    """Every selection as low as it can go; selections that meet are merged."""
    return _push(plan, ())


def _push(plan: Plan, conditions: Conditions) -> Plan:
    """The plan with the conditions applied to its result, somewhere in or above it."""
    if isinstance(plan, Select):
        return _push(plan.input, each_once((*conjuncts(plan.predicate), *conditions)))
    pushed = plan.push(conditions)
    inputs = tuple(_push(input_, below) for input_, below in zip(plan.inputs, pushed.below, strict=True))
    left = conjunction(pushed.above)
    made = pushed.node.with_inputs(inputs)
    return made if left is None else Select(made, left)
