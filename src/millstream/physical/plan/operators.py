"""Plan node → worker operator; a chain of selections and projections becomes one."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.expression import Column, Expression, conjunction, rewrite
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan
from millstream.runtime.operator.contract import Operator
from millstream.runtime.operator.registry import Site, operator_for
from millstream.runtime.pipeline import project, select
from millstream.runtime.pipeline.pipeline import Pipeline

ALONE = 0, 1
"""The place of the only shard."""


def build(plan: Plan, site: Site) -> Operator:
    """Make the operator for the topmost node of a plan."""
    return operator_for(plan.stem).at(site, plan.parameters())


def build_pipeline(chain: Sequence[Plan]) -> Pipeline:
    """Make one operator for a chain of selections and projections, the topmost first."""
    stages = [build(plan, Site()) for plan in reversed(chain)]
    return Pipeline([stage for stage in stages if isinstance(stage, select.Select | project.Project)], *fused(chain))


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
