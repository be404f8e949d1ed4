"""The range of a column of a plan, by the conditions and expressions below it."""

from __future__ import annotations

from millstream.algebra.expression import Binary, Column, Expression, Literal, conjuncts
from millstream.algebra.ranges import ANYTHING, LIMITS, Range, Ranges, united
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan

_MIRRORED = {"<": ">", "<=": ">=", "=": "="}


def non_negative(plan: Plan, column: str) -> bool:
    """Return whether no value of a column of the plan is negative, as far as the plan shows it."""
    return _range(plan, Column(plan.schema.type_of(column), column))[0] >= 0


def _range(plan: Plan, column: Column) -> Range:
    if column.type not in LIMITS or column.name not in plan.schema:
        return LIMITS.get(column.type, ANYTHING)
    if isinstance(plan, Project):
        return Ranges(lambda below: _range(plan.input, below)).of(dict(plan.items)[column.name])
    copies = [(plan.inputs[place], name) for place, name in plan.copied(column.name)]
    low, high = united(
        [LIMITS[column.type]] if not copies else [_range(p, Column(p.schema.type_of(n), n)) for p, n in copies]
    )
    if isinstance(plan, Select):
        low = max([low, *(_least(part, column.name) for part in conjuncts(plan.predicate))])
    return low, high


def _least(condition: Expression, column: str) -> float:
    """Return a value that no value of a column is below where a condition is true."""
    if isinstance(condition, Binary):
        op, left, right = condition.op, condition.left, condition.right
        if isinstance(left, Literal):
            op, left, right = _MIRRORED.get(op, ""), right, left
        if isinstance(left, Column) and left.name == column and op in (">", ">=", "=") and isinstance(right, Literal):
            return right.value if isinstance(right.value, int | float) else ANYTHING[0]
    return ANYTHING[0]
