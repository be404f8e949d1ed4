"""Selections and projections above each other, as one condition and one list of columns."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.expression import Column, Expression, conjunction, rewrite
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan


def fused(chain: Sequence[Plan]) -> tuple[Expression | None, tuple[tuple[str, Expression], ...]]:
    """A chain of selections and projections as one condition and one list of columns over the input of the lowest."""
    bottom = chain[-1].inputs[0].schema
    columns: dict[str, Expression] = {a.name: Column(a.type, a.name) for a in bottom}
    conditions: list[Expression] = []

    def over_input(expression: Expression) -> Expression:
        return rewrite(expression, lambda node: columns.get(node.name) if isinstance(node, Column) else None)

    for plan in reversed(chain):
        if isinstance(plan, Select):
            conditions.append(over_input(plan.predicate))
        elif isinstance(plan, Project):
            columns = {name: over_input(item) for name, item in plan.items}
    return conjunction(tuple(conditions)), tuple(columns.items())
