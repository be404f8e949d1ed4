"""Plan to plan: an ordered tuple of rules, each in a file of its own.

A rule never changes what a query computes, nor the names and types of its result.
"""

from __future__ import annotations

from millstream.errors import PlanError
from millstream.logical.catalog import Catalog
from millstream.logical.plan import Plan
from millstream.optimizer.canonical import canonical_predicates
from millstream.optimizer.context import Context, Rule
from millstream.optimizer.join_grouping import group_joins
from millstream.optimizer.panes import paned_aggregates
from millstream.optimizer.projection import merge_projections
from millstream.optimizer.pruning import prune_columns
from millstream.optimizer.selection import push_selections

__all__ = ["RULES", "optimize"]

RULES: tuple[Rule, ...] = (
    push_selections,
    canonical_predicates,
    group_joins,
    merge_projections,
    prune_columns,
    merge_projections,
    paned_aggregates,
)


def optimize(plan: Plan, catalog: Catalog | None = None, *, paned: bool = True, multi_join: str = "auto") -> Plan:
    """The plan after all rules. The catalog tells which columns punctuation restricts; they are never pruned."""
    context = Context(catalog, paned, multi_join)
    try:
        for rule in RULES:
            plan = rule(plan, context)
    except RecursionError:
        raise PlanError("M3099", "the query is nested too deeply", line=1, column=1) from None
    return plan
