"""The optimizer: an ordered tuple of rules from plan to plan, one file per rule.

A rule never changes the result of a query, nor its column names and types.
"""

from __future__ import annotations

from millstream.errors import PlanError
from millstream.logical.catalog import Catalog
from millstream.logical.contract.offers import Declarations
from millstream.logical.plan import Plan
from millstream.optimizer.canonical import canonical_predicates
from millstream.optimizer.context import Context, Rule
from millstream.optimizer.early import answering_aggregates
from millstream.optimizer.join_contracts import accorded_joins
from millstream.optimizer.join_grouping import group_joins
from millstream.optimizer.panes import paned_aggregates
from millstream.optimizer.projection import merge_projections
from millstream.optimizer.pruning import prune_columns
from millstream.optimizer.selection import push_selections
from millstream.optimizer.time_punctuation import groups_by_time

__all__ = ["RULES", "optimize"]

RULES: tuple[Rule, ...] = (
    push_selections,
    canonical_predicates,
    group_joins,
    accorded_joins,
    merge_projections,
    prune_columns,
    merge_projections,
    groups_by_time,
    merge_projections,
    answering_aggregates,
    paned_aggregates,
)


def optimize(
    plan: Plan,
    catalog: Catalog | None = None,
    *,
    paned: bool = True,
    multi_join: str = "auto",
    declarations: Declarations | None = None,
    accumulators: str = "auto",
) -> Plan:
    """Apply all rules to a plan. Columns that punctuation restricts, by the catalog, are never pruned. `declarations`
    are what the streams promise, if that is not what the catalog says."""
    context = Context(catalog or Catalog(), paned, multi_join, declarations, accumulators)
    try:
        for rule in RULES:
            plan = rule(plan, context)
    except RecursionError:
        raise PlanError("M3099", "the query is nested too deeply", line=1, column=1) from None
    return plan
