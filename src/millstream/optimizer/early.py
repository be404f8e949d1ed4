"""Which aggregates answer prods: the topmost one of a query that asks for early answers, and all below it.

    Project window_end, n, finality                   Project window_end, n, finality
    └─ WindowAggregate COUNT(*) finality        →     └─ Assess n
       └─ WindowAggregate BY k SUM(v)                    └─ WindowAggregate COUNT(*) finality
                                                            └─ WindowAggregate BY k SUM(v) early

Only selections and projections may be above the topmost one: nothing else has a reader that could tell early rows from
final ones. Early rows of an aggregate below are never kept, so every aggregate is an accumulator; the panes of one
aggregate are its increments (`panes`). Above the topmost one and its HAVING early answers are assessed, if it has
windows over time and computes a number.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.logical.assessing import assessed
from millstream.logical.early import topmost
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context, bottom_up


def answering_aggregates(plan: Plan, context: Context) -> Plan:
    """Mark the aggregates that answer prods, and assess the answers of the topmost one."""
    top = topmost(plan)
    asks = top is not None and (top.finality or bool(top.early))

    def marked(part: Plan) -> Plan:
        if not isinstance(part, WindowAggregate):
            return part
        early = "inner" if asks else ""
        return part if part.early == early else replace(part, early=early)

    def through(part: Plan) -> Plan:
        """Mark the topmost aggregate below selections and projections."""
        if isinstance(part, WindowAggregate):
            return replace(part, early="top")
        return part.with_inputs((through(part.inputs[0]),))

    made = bottom_up(plan, marked)
    return assessed(through(made)) if asks else made
