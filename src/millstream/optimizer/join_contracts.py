"""Joins of several inputs that leave state unbounded are joined differently, if that bounds it.

    MultiJoin auctions, bids, clicks ON id = auction = auction          WindowJoin ON auctions.id = clicks.auction
    ├─ Scan auctions                 clicks: UNBOUNDED             →    ├─ WindowJoin ON auctions.id = bids.auction
    ├─ Scan bids                                                        │  ├─ Scan auctions
    └─ Scan clicks                                                      │  └─ Scan bids
                                                                        └─ Scan clicks           all BOUNDED

One join of two inputs may close what each of them closes only in part. So the same joins have an accordance in one
order, or in one operator, and none in another. The rule tries pairwise joins in other orders, and one operator, and
takes the plan with the fewest unbounded parts; the cheapest plan stays if none has fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations

from millstream.algebra.expression import conjuncts
from millstream.logical.contract.accordance import unbounded
from millstream.logical.join.graph import LEAST, JoinGraph, JoinInput, join_graph
from millstream.logical.join.multi_join import multi_join
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.project import narrowed
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context
from millstream.optimizer.join_grouping import ALWAYS, NEVER, Joiner, same

TRIED = 24
"""Most plans that are tried for one tree of joins."""


def accorded_joins(plan: Plan, context: Context) -> Plan:
    """Return the plan with its joins in an order, or in one operator, that leaves the fewest parts unbounded."""
    if context.multi_join == ALWAYS or not any(_graph(node) for node in plan.walk()):
        return plan
    least = len(unbounded(plan, context.declared))
    for tree in [node for node in plan.walk() if _graph(node) is not None] if least else ():
        for other in islice(_others(tree, context), TRIED):
            tried = _replaced(plan, tree, other)
            if same(other, tree) and (left := len(unbounded(tried, context.declared))) < least:
                plan, least, tree = tried, left, other
            if not least:
                return plan
    return plan


def _graph(plan: Plan) -> JoinGraph | None:
    """The join graph of a tree of joins, or of one operator."""
    if isinstance(plan, MultiJoin):
        inputs = tuple(map(JoinInput, plan.members, plan.prefixes, plan.windows))
        return JoinGraph(inputs, plan.equal, conjuncts(plan.residual))
    return join_graph(plan) if isinstance(plan, WindowJoin) else None


def _others(tree: Plan, context: Context) -> Iterator[Plan]:
    """Yield other plans of the same joins, with the columns in the same order."""
    graph = _graph(tree)
    assert graph is not None
    names = tree.schema.names
    if context.multi_join != NEVER and not isinstance(tree, MultiJoin):
        for group in (group for group in graph.groups() if len(group) == len(graph.inputs) >= LEAST):
            yield narrowed(multi_join(graph, group, list(graph.residual)), names)
    for order in permutations(graph.inputs):
        joined = Joiner(JoinGraph(order, graph.equal, graph.residual)).join(())
        if joined is not None and all(node.keys for node in _joins(joined, set(map(id, (i.plan for i in order))))):
            yield narrowed(joined, names)


def _joins(plan: Plan, inputs: set[int]) -> Iterator[WindowJoin]:
    """The joins of a tree above its inputs."""
    if isinstance(plan, WindowJoin) and id(plan) not in inputs:
        yield plan
        for input_ in plan.inputs:
            yield from _joins(input_, inputs)


def _replaced(plan: Plan, old: Plan, new: Plan) -> Plan:
    if plan is old:
        return new
    inputs = tuple(_replaced(input_, old, new) for input_ in plan.inputs)
    changed = any(one is not other for one, other in zip(inputs, plan.inputs, strict=True))
    return plan.with_inputs(inputs) if changed else plan
