"""Early answers in a plan: the aggregate that answers for the query, and what it would be asked."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from millstream.algebra.early import mapped
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import ANY
from millstream.algebra.window import WINDOW_END, WINDOW_START
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan


def above_answers(plan: Plan) -> list[Plan]:
    """The nodes above the one whose results are those of a query, which pass its answers on, the topmost first."""
    found: list[Plan] = []
    while plan.passes_answers:
        found.append(plan)
        (plan,) = plan.inputs
    return found


def answering(plan: Plan) -> Plan:
    """The node whose results are those of a query."""
    above = above_answers(plan)
    return above[-1].inputs[0] if above else plan


def topmost(plan: Plan) -> WindowAggregate | None:
    """The aggregate that gives the results of a query; None if another operator does."""
    found = answering(plan)
    return found if isinstance(found, WindowAggregate) else None


def emits_early(plan: Plan) -> bool:
    """Return whether the rows that prods bring to the top of a plan are early rows of its query."""
    top = answering(plan)
    return top.answers or (topmost(plan) is None and any(part.answers for part in above_answers(plan)))


def owned(plan: Plan, query: str, *, inner: bool = False) -> Plan:
    """The plan of a query, whose counts of answers are its own, also those of its subqueries, and so are operators that
    shed tuples behind its prods. `inner`: the plan is that of a subquery."""
    inner = inner or not plan.passes_answers
    return plan.with_inputs(tuple(owned(part, query, inner=inner) for part in plan.inputs)).owned(query, inner=inner)


def asked_of_topmost(plan: Plan, pattern: Pattern) -> Pattern | None:
    """A pattern over the columns of a query, as one over the end of a window and the groups of its topmost aggregate;
    None if they have no copies of the columns."""
    for part in above_answers(plan):
        names = {name: column for name in pattern.attributes for _, column in part.copied(name)}
        if names.keys() != pattern.attributes:
            return None
        pattern = pattern.rename(names)
    top = topmost(plan)
    windows = None if top is None else top.windows
    start = pattern.get(WINDOW_START)
    if windows is None or start.is_any:
        return pattern
    rest = Pattern.of(dict(pattern.items) | {WINDOW_START: ANY})
    return rest.intersect(Pattern.of({WINDOW_END: mapped(start, lambda held: _later(held, windows.length))}))


def _later(time: Any, length: int) -> Any:
    return time + timedelta(microseconds=length) if isinstance(time, datetime) else time + length
