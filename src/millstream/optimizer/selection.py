"""Selection push-down: filter as early as possible.

    Select (b.price > 5)                      WindowJoin b, a ON b.auction = a.id
    └─ WindowJoin b, a ON b.auction = a.id    ├─ Select (price > 5)
       ├─ Scan bids                      →    │  └─ Scan bids
       └─ Scan auctions                       └─ Scan auctions

Each node decides which conjuncts on its result are pushed into which input, and which it tests itself (`Plan.push`);
the rest stays above it.
"""

from __future__ import annotations

from millstream.algebra.expression import conjunction, conjuncts
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Conditions, Plan, each_once
from millstream.optimizer.context import Context


def push_selections(plan: Plan, context: Context) -> Plan:
    """Push every selection as low as possible; merge those that meet."""
    return _push(plan, ())


def _push(plan: Plan, conditions: Conditions) -> Plan:
    """Return the plan with the conditions applied to its result, somewhere in or above it."""
    if isinstance(plan, Select):
        return _push(plan.input, each_once((*conjuncts(plan.predicate), *conditions)))
    pushed = plan.push(conditions)
    inputs = tuple(_push(input_, below) for input_, below in zip(plan.inputs, pushed.below, strict=True))
    above = conjunction(pushed.above)
    node = pushed.node.with_inputs(inputs)
    return node if above is None else Select(node, above)
