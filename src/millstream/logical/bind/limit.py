"""`LIMIT n` of a continuous query: its first n rows. It has no last row, so it cannot be sorted or skipped."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.logical.nodes.limit import Limit
from millstream.logical.plan import Plan


def limited(clause: ast.Tail, plan: Plan, tail: Iterable[ast.Tail]) -> Plan:
    """Return the plan with a LIMIT; raise PlanError for ORDER BY and OFFSET."""
    sorts = [each for each in tail if each.clause == "ORDER BY"]
    if clause.clause != "LIMIT" or sorts:
        refused = sorts[0] if sorts else clause
        hint = "A continuous query never ends, so it has no last row; sort the rows that you take from it."
        if any(each.clause == "LIMIT" for each in tail):
            hint = "LIMIT n alone takes the first n rows that come."
        raise PlanError("M3001", f"{refused.clause} is not possible in a continuous query", hint=hint, **refused.place)
    match clause.amount:
        case ast.Constant(value=int() as count) if not isinstance(count, bool) and count >= 0:
            return Limit(plan, count)
    raise BindError("M2027", "LIMIT needs a whole number, 0 or more", hint="such as LIMIT 10", **clause.place)
