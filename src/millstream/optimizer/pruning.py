"""Projection push-down: unread columns leave the plan as low as possible.

    Project price, seller                         Project price, seller
    └─ WindowJoin b, a ON b.auction = a.id        └─ WindowJoin b, a ON b.auction = a.id
       ├─ Scan bids                          →       ├─ Project auction, price, ts
       └─ Scan auctions                              │  └─ Scan bids
                                                     └─ Project id, seller, ts
                                                        └─ Scan auctions

A punctuation that restricts a column is lost with the column. So time columns and columns of a stream's punctuation
scheme or primary key stay, whether or not the query reads them. Each node knows what it needs from its inputs
(`Plan.pruned`) and which of its columns are copies of theirs (`Plan.copied`).
"""

from __future__ import annotations

from millstream.logical.nodes.project import narrowed
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Names, Need, Plan
from millstream.optimizer.context import Context


def prune_columns(plan: Plan, context: Context) -> Plan:
    """Return the plan with the same result columns, whose lower parts carry only columns that are read or
    punctuated."""
    return narrowed(_pruned(plan, frozenset(plan.schema.names), context), plan.schema.names)


def _pruned(plan: Plan, needed: Names, context: Context) -> Plan:
    """Return the plan with at least the needed columns, in their original order."""
    kept = needed | _carried(plan, context)
    if isinstance(plan, Scan):
        return _only(plan, kept)
    pruned, needs = plan.pruned(kept)
    return pruned.with_inputs(tuple(_input(*below, context) for below in zip(plan.inputs, needs, strict=True)))


def _input(plan: Plan, need: Need, context: Context) -> Plan:
    pruned = _pruned(plan, need.names, context)
    if need.exact:
        return _only(pruned, need.names)
    return _only(pruned, need.names | _carried(pruned, context)) if need.stored else pruned


def _carried(plan: Plan, context: Context) -> Names:
    """Return the result columns that punctuation may restrict."""
    carried = plan.carried(tuple(_carried(input_, context) for input_ in plan.inputs))
    return carried | context.catalog.punctuated(plan.stream) if isinstance(plan, Scan) else carried


def _only(plan: Plan, kept: Names) -> Plan:
    """Return the plan with only the kept columns, but at least one."""
    return narrowed(plan, tuple(name for name in plan.schema.names if name in kept) or plan.schema.names[:1])
