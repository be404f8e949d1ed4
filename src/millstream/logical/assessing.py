"""The comparison of a query's early answers with final ones: where it stands in the plan, and of which aggregate."""

from __future__ import annotations

from millstream.algebra.expression import Expression
from millstream.logical.early import above_answers, topmost
from millstream.logical.nodes.assess import Assess
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan


def assessed(plan: Plan, quality: Expression | None = None) -> Plan:
    """Put an Assess below the lowest projection, or give the one that is there a quality function. Without windows over
    time, or an aggregate to compare, there is none."""
    top, above = topmost(plan), above_answers(plan)
    lowest = max((place for place, part in enumerate(above, 1) if isinstance(part, Project)), default=0)
    value = None if top is None else compared(plan, top, numbers=quality is None)
    if top is None or top.windows is None or top.attribute is not None or value is None:
        return plan
    found = next((place for place, part in enumerate(above) if isinstance(part, Assess)), None)
    if found is not None:
        made = above[found].altered(quality=quality or getattr(above[found], "quality", None))
        lowest = found
    else:
        below = top if lowest == len(above) else above[lowest]
        keys = (*top.ends[:1], *top.group)
        made = Assess(below, keys, value, "", top.windows, quality=quality)
    for node in reversed(above[:lowest]):
        made = node.with_inputs((made,))
    return made


def compared(plan: Plan, top: WindowAggregate, *, numbers: bool = True) -> str | None:
    """The aggregate whose early values are compared: the first one in the select list, of those that are numbers."""
    calls, above = [call.name for call in top.aggregates if call.type.is_numeric or not numbers], above_answers(plan)
    if found := [part.value for part in above if isinstance(part, Assess)]:
        return found[0]
    for name in plan.schema.names:
        read = {name}
        for part in above:
            if isinstance(part, Project):
                items = dict(part.items)
                read = {column for each in read if each in items for column in items[each].columns()}
        found = [call for call in calls if call in read]
        if found:
            return found[0]
    return None
