"""Plan node → worker operator; a chain of selections and projections becomes one."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.logical.fused import fused
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
