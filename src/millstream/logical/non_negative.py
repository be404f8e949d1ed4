"""Columns that are known not to be negative, by the conditions and expressions below.

| column | not negative |
|---|---|
| a constant from 0 on, `CASE` of such, sums and products of such, `ABS` | yes |
| copied, or a tuple of the input unchanged | if it is not negative below |
| under a condition `c >= 0`, `c > 0`, `c = 5` | yes |
| any other | unknown |
"""

from __future__ import annotations

from millstream.algebra.expression import Binary, Call, Case, Column, Expression, Literal, conjuncts
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan

_AT_LEAST = (">", ">=", "=")
_AT_MOST = {"<": ">", "<=": ">=", "=": "="}


def non_negative(plan: Plan, column: str) -> bool:
    """Return whether no value of a column of the plan is negative, as far as the plan shows it."""
    if isinstance(plan, Select) and any(_bounds(part, column) for part in conjuncts(plan.predicate)):
        return True
    if isinstance(plan, Project):
        return _positive(dict(plan.items)[column], plan.input)
    copies = plan.copied(column)
    return bool(copies) and all(non_negative(plan.inputs[place], name) for place, name in copies)


def _bounds(condition: Expression, column: str) -> bool:
    """Return whether a condition keeps negative values of a column out."""
    if not isinstance(condition, Binary):
        return False
    op, left, right = condition.op, condition.left, condition.right
    if isinstance(left, Literal):
        op, left, right = _AT_MOST.get(op, ""), right, left
    if not (isinstance(left, Column) and left.name == column and isinstance(right, Literal) and op in _AT_LEAST):
        return False
    return isinstance(right.value, int | float) and right.value >= 0


def _positive(expression: Expression, below: Plan) -> bool:
    match expression:
        case Column(name=name):
            return name in below.schema and non_negative(below, name)
        case Literal(value=int() | float() as value):
            return value >= 0
        case Call(function="ABS"):
            return True
        case Binary(op="+" | "*", left=left, right=right):
            return _positive(left, below) and _positive(right, below)
        case Case(branches=branches, otherwise=otherwise):
            chosen = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
            return all(_positive(value, below) for value in chosen)
    return False
