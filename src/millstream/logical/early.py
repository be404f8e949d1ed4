"""Early answers in a plan: the aggregate that answers for the query, and what it would be asked."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from millstream.algebra.early import mapped
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import ANY
from millstream.algebra.window import WINDOW_END, WINDOW_START
from millstream.logical.nodes.assess import Assess
from millstream.logical.nodes.expensive import Expensive
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.revise import Revise
from millstream.logical.nodes.select import Select
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan

PASSING = (Project, Select, Revise, Assess)
"""What may be above the aggregate that answers."""


def topmost(plan: Plan) -> WindowAggregate | None:
    """The aggregate that gives the results of a query; None if another operator does."""
    while isinstance(plan, PASSING):
        plan = plan.input
    return plan if isinstance(plan, WindowAggregate) else None


def emits_early(plan: Plan) -> bool:
    """Return whether the rows that prods bring to the top of a plan are early rows of its query."""
    while isinstance(plan, Project | Select):
        plan = plan.input
    top = topmost(plan)
    return isinstance(plan, Revise | Assess) if top is None else top.early == "top"


def owned(plan: Plan, query: str, *, inner: bool = False) -> Plan:
    """The plan of a query, whose counts of answers are its own, also those of its subqueries, and so are operators that
    shed tuples behind its prods. `inner`: the plan is that of a subquery."""
    inner = inner or not isinstance(plan, PASSING)
    made = plan.with_inputs(tuple(owned(part, query, inner=inner) for part in plan.inputs))
    if isinstance(made, Assess):
        return made.altered(owner=query, inner=inner)
    sheds = isinstance(made, Expensive) and made.shed
    return made.altered(owner=query) if sheds or isinstance(made, Revise) else made


def asked_of_topmost(plan: Plan, pattern: Pattern) -> Pattern | None:
    """A pattern over the columns of a query, as one over the end of a window and the groups of its topmost aggregate;
    None if they have no copies of the columns."""
    while isinstance(plan, PASSING):
        names = {name: column for name in pattern.attributes for _, column in plan.copied(name)}
        if names.keys() != pattern.attributes:
            return None
        pattern, plan = pattern.rename(names), plan.input
    length = plan.range if isinstance(plan, WindowAggregate) else None
    start = pattern.get(WINDOW_START)
    if length is None or start.is_any:
        return pattern
    rest = Pattern.of(dict(pattern.items) | {WINDOW_START: ANY})
    return rest.intersect(Pattern.of({WINDOW_END: mapped(start, lambda held: _later(held, length))}))


def _later(time: Any, length: int) -> Any:
    return time + timedelta(microseconds=length) if isinstance(time, datetime) else time + length
