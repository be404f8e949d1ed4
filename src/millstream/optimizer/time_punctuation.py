"""Groups by the time of one side of a join close by that side's time.

    WindowAggregate BY y.ts COUNT(*)           Project y.ts, count
    └─ WindowJoin x, y ON x.k = y.k       →    └─ WindowAggregate BY y.ts, y.ts~ COUNT(*)
       ├─ Scan x                                  └─ WindowJoin x, y ON x.k = y.k
       └─ Scan y                                     ├─ Scan x
                                                     └─ TimePunctuation ts AS ts~
                                                        └─ Scan y

The time of the results does not close them: without a window they may have old tuples of y. Punctuation on `ts~` does,
once the join stores no tuple that matches. Where the side emits punctuation on its time anyway, nothing is added.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.algebra.expression import Column
from millstream.algebra.names import prefixed
from millstream.logical.nodes.distinct import Distinct
from millstream.logical.nodes.kinds.windowed import Windowed
from millstream.logical.nodes.project import Project, narrowed
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.nodes.time_punctuation import TimePunctuation
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context, bottom_up

_MARK = "~"
"""Ends the names of the copies; no name in a query has it."""


def groups_by_time(plan: Plan, context: Context) -> Plan:
    """Let groups without a window, and DISTINCT, close by the times of the sides of a join below."""
    return bottom_up(plan, _closed_by_sides)


def _closed_by_sides(plan: Plan) -> Plan:
    if isinstance(plan, Distinct):
        columns = plan.schema.names
    elif isinstance(plan, WindowAggregate) and plan.windows is None:
        columns = plan.group
    else:
        return plan
    below, copies = plan.inputs[0], list[str]()
    for column in columns:
        if column not in below.schema.trails and (found := _punctuated(below, column)) is not None:
            below, copy = found
            copies.append(copy)
    if not copies:
        return plan
    told = replace(plan, input=below)
    told = replace(told, group=(*told.group, *copies)) if isinstance(told, WindowAggregate) else told
    return narrowed(told, plan.schema.names)


def _punctuated(plan: Plan, column: str) -> tuple[Plan, str] | None:
    """Return the plan with a copy of a column that the time of a side of a join closes, and the name of the copy."""
    match plan:
        case Select():
            found = _punctuated(plan.input, column)
            return None if found is None else (replace(plan, input=found[0]), found[1])
        case Project():
            item = dict(plan.items)[column]
            found = _punctuated(plan.input, item.name) if isinstance(item, Column) else None
            if found is None or column + _MARK in plan.schema:
                return None
            copied = column + _MARK, Column(item.type, found[1])
            return replace(plan, input=found[0], items=(*plan.items, copied)), copied[0]
        case Windowed():
            return _of_side(plan, column)
    return None


def _of_side(plan: Windowed, column: str) -> tuple[Plan, str] | None:
    for place, side in enumerate(plan.sides):
        own = next((name for name, output in side.names.items() if output == column), None)
        if own is None or side.input is None:
            continue
        if own in side.schema.trails and own + _MARK not in side.schema:
            if _sent(side.input, own):
                return None
            found: tuple[Plan, str] | None = TimePunctuation(side.input, own, own + _MARK), own + _MARK
        else:
            found = _punctuated(side.input, own)
        if found is None:
            return None
        inputs = (*plan.inputs[:place], found[0], *plan.inputs[place + 1 :])
        return plan.with_inputs(inputs), prefixed(found[1], side.prefix)
    return None


def _sent(plan: Plan, column: str) -> bool:
    """Return whether a plan emits punctuation on a column that follows time. Only punctuation moves the time of a
    stream that is not in order."""
    if isinstance(plan, Scan):
        return not plan.schema.ordered
    return column in plan.punctuates or any(_sent(plan.inputs[place], name) for place, name in plan.copied(column))
