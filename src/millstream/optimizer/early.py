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

from millstream.logical.early import PASSING, topmost
from millstream.logical.nodes.assess import Assess
from millstream.logical.nodes.project import Project
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


def assessed(plan: Plan) -> Plan:
    """Put an Assess below the lowest projection, unless there is one."""
    top, above = topmost(plan), list[Plan]()
    part, lowest = plan, 0
    while isinstance(part, PASSING):
        above.append(part)
        lowest = len(above) if isinstance(part, Project) else lowest
        part = part.inputs[0]
    value = None if top is None else first_number(plan, top)
    if top is None or top.range is None or top.attribute is not None or value is None:
        return plan
    if any(isinstance(part, Assess) for part in above):
        return plan
    below = top if lowest == len(above) else above[lowest]
    made: Plan = Assess(below, (*top.ends[:1], *top.group), value, "", top.range, top.slide or top.range)
    for node in reversed(above[:lowest]):
        made = node.with_inputs((made,))
    return made


def first_number(plan: Plan, top: WindowAggregate) -> str | None:
    """The aggregate that the first column of a query is computed of which is computed of any that is a number."""
    numbers = [call.name for call in top.aggregates if call.type.is_numeric]
    for name in plan.schema.names:
        read, part = {name}, plan
        while isinstance(part, PASSING):
            if isinstance(part, Project):
                items = dict(part.items)
                read = {column for each in read if each in items for column in items[each].columns()}
            part = part.inputs[0]
        found = [number for number in numbers if number in read]
        if found:
            return found[0]
    return None
