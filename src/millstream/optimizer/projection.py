"""Adjacent projections are merged, and projections that change nothing are removed.

    Project (total * 2) AS twice         Project (sum_volume * 2) AS twice
    └─ Project sum_volume AS total   →   └─ WindowAggregate …
       └─ WindowAggregate …

Projections stay separate if the upper one would compute an expression of the lower one more than once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from millstream.algebra.expression import Column, Expression, Literal, rewrite
from millstream.logical.nodes.project import Project, copies
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context, bottom_up


def merge_projections(plan: Plan, context: Context) -> Plan:
    """Merge each projection with the one right below it, where that saves work; remove those without effect."""
    return bottom_up(plan, _merged)


def _merged(plan: Plan) -> Plan:
    if not isinstance(plan, Project):
        return plan
    if plan.items == copies(plan.input.schema):
        return plan.input
    lower = plan.input
    if not isinstance(lower, Project):
        return plan
    computed = dict(lower.items)
    uses = Counter(name for _, expression in plan.items for name in _column_uses(expression))
    if any(count > 1 and not isinstance(computed.get(name), Column | Literal | None) for name, count in uses.items()):
        return plan

    def substitute(part: Expression) -> Expression | None:
        return computed.get(part.name) if isinstance(part, Column) else None

    return _merged(Project(lower.input, tuple((name, rewrite(e, substitute)) for name, e in plan.items)))


def _column_uses(expression: Expression) -> Iterator[str]:
    """Yield the name of every column read, once per read."""
    if isinstance(expression, Column):
        yield expression.name
    for child in expression.children():
        yield from _column_uses(child)
