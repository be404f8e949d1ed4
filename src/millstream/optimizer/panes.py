"""Sliding windows over panes: each tuple is aggregated once, not once per window.

    WindowAggregate [RANGE 60 SLIDE 20] SUM(v)   →   WindowAggregate [RANGE 60 SLIDE 20] SUM(v) over panes
                                                     └─ PaneAggregate [PANE 20] SUM(v)

Which aggregates have two levels: `logical/two_levels.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from millstream.algebra.window import PANE_END
from millstream.logical import two_levels
from millstream.logical.nodes.pane_aggregate import PaneAggregate
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context, bottom_up


def paned_aggregates(plan: Plan, context: Context) -> Plan:
    """Split window aggregates whose windows overlap into two levels."""
    return bottom_up(plan, partial(_paned, context)) if context.paned else plan


def _paned(context: Context, plan: Plan) -> Plan:
    if not isinstance(plan, WindowAggregate) or (panes := two_levels.of_plan(plan)) is None:
        return plan
    # An open pane has tuples that an early answer must count. It may hand them over for good, unless an operator below
    # adds rows to a prod that come again later: early rows of an aggregate, tuples that wait in a union or join.
    keeps = context.accumulators == "all" or not all(part.passes_prods for part in plan.input.walk())
    early = "" if not plan.early else "keep" if keeps else "release"
    below = PaneAggregate(plan.input, panes, plan.group, plan.aggregates, plan.attribute, early=early)
    attribute = None if plan.attribute is None else PANE_END
    return replace(plan, input=below, attribute=attribute, over_panes=True, increments=early == "release")
