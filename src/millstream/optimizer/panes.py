"""Sliding windows over panes: each tuple is aggregated once, not once per window.

    WindowAggregate [RANGE 60 SLIDE 20] SUM(v)   →   WindowAggregate [RANGE 60 SLIDE 20] SUM(v) over panes
                                                     └─ PaneAggregate [PANE 20] SUM(v)

The length of a pane is the greatest common divisor of range and slide, so every window is a whole number of panes. Only
mergeable aggregates can be computed from panes. Where a tuple is in very many windows, the aggregate holds panes itself
(`held_in_panes`), and one level suffices.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import gcd

from millstream.algebra.window import MOST_PANES, PANE_END
from millstream.logical.nodes.pane_aggregate import PaneAggregate
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context, bottom_up


def paned_aggregates(plan: Plan, context: Context) -> Plan:
    """Split window aggregates whose windows overlap into two levels."""
    return bottom_up(plan, partial(_paned, context)) if context.paned else plan


def _paned(context: Context, plan: Plan) -> Plan:
    if not isinstance(plan, WindowAggregate) or plan.over_panes or plan.range is None or plan.slide is None:
        return plan
    pane = gcd(plan.range, plan.slide)
    mergeable = all(call.mergeable for call in plan.aggregates)
    if plan.range <= plan.slide or plan.range // pane > MOST_PANES or not mergeable or plan.in_panes:
        return plan
    # An open pane has tuples that an early answer must count. It may hand them over for good, unless an operator below
    # adds rows to a prod that come again later: early rows of an aggregate, tuples that wait in a union or join.
    keeps = context.accumulators == "all" or not all(part.passes_prods for part in plan.input.walk())
    early = "" if not plan.early else "keep" if keeps else "release"
    below = PaneAggregate(plan.input, pane, plan.group, plan.aggregates, plan.attribute, early=early)
    attribute = None if plan.attribute is None else PANE_END
    return replace(plan, input=below, attribute=attribute, over_panes=True, increments=early == "release")
