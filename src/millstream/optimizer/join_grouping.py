"""Joins of three inputs or more on a common attribute, in one operator.

    WindowJoin [RANGE 6], c [RANGE 7] ON a.k = c.k WHERE …       MultiJoin a [RANGE 5], b [RANGE 6], c [RANGE 7]
    ├─ WindowJoin a [RANGE 5], b [RANGE 6] ON a.k = b.k     →              ON a.k = b.k = c.k
    │  ├─ Scan a                                                 ├─ Scan a
    │  └─ Scan b                                                 ├─ Scan b
    └─ Scan c                                                    └─ Scan c

Inputs are grouped by the attributes that are equal over them: the largest group first, and each that is cheaper in one
operator than as a tree (`join_cost`) becomes one. Groups and what is in none are joined two by two, in the order of
their first inputs; a projection puts the columns back into the order that they had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.algebra.expression import Expression
from millstream.algebra.window import Window, widest
from millstream.logical.join.cost import compared
from millstream.logical.join.graph import JoinGraph, Leaf, join_graph, within
from millstream.logical.join.grouped import equalities, in_order_of_text, one_operator
from millstream.logical.nodes.project import narrowed
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context

AUTO, ALWAYS, NEVER = "auto", "always", "never"


def group_joins(plan: Plan, context: Context) -> Plan:
    """The plan with trees of joins on common attributes in one operator each, where that is cheaper."""
    return plan if context.multi_join == NEVER else _grouped(plan, always=context.multi_join == ALWAYS)


def _grouped(plan: Plan, *, always: bool) -> Plan:
    if isinstance(plan, WindowJoin):
        made = _regrouped(plan, always=always)
        if made is not None and made.schema == plan.schema:
            return made
    inputs = tuple(_grouped(input_, always=always) for input_ in plan.inputs)
    return plan.with_inputs(inputs) if inputs != plan.inputs else plan


def _regrouped(plan: WindowJoin, *, always: bool) -> Plan | None:
    graph = join_graph(plan)
    if graph is None:
        return None
    costs = [(group, *compared(graph, group)) for group in graph.groups()]
    chosen = [group for group, one, tree in costs if always or one.cost <= tree.cost]
    if not chosen:
        return None
    leaves = tuple(replace(leaf, plan=_grouped(leaf.plan, always=always)) for leaf in graph.leaves)
    made = _Rebuilt(JoinGraph(leaves, graph.equal, graph.residual)).plan(chosen)
    return None if made is None else narrowed(made, plan.schema.names)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Some inputs, joined."""

    leaves: tuple[int, ...]
    plan: Plan
    prefix: str | None


class _Rebuilt:
    """Joins of a graph, group by group. Conditions are taken by the lowest join that has their columns."""

    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._waiting = list(graph.residual)

    def plan(self, groups: Sequence[tuple[int, ...]]) -> Plan | None:
        grouped = {leaf for group in groups for leaf in group}
        alone = [(i,) for i in range(len(self._graph.leaves)) if i not in grouped]
        whole: _Unit | None = None
        for members in sorted([*groups, *alone]):
            unit = self._unit(members)
            whole = unit if whole is None else self._pair(whole, unit)
            if whole is None:
                return None
        assert whole is not None
        return whole.plan

    def _leaf(self, i: int) -> Leaf:
        return self._graph.leaves[i]

    def _unit(self, members: tuple[int, ...]) -> _Unit:
        if len(members) == 1:
            leaf = self._leaf(members[0])
            return _Unit(members, leaf.plan, leaf.prefix)
        plan = one_operator(self._graph, members, self._take(members))
        return _Unit(members, plan, None)

    def _pair(self, left: _Unit, right: _Unit) -> _Unit | None:
        keys: list[tuple[str, str]] = []
        rest: list[tuple[str, str]] = []
        for equal in self._graph.equal:
            sides = [[name for name in equal if self._graph.owner[name] in unit.leaves] for unit in (left, right)]
            if all(sides):
                keys.append((sides[0][0], sides[1][0]))
            for unit, names in zip((left, right), sides, strict=True):
                if len(unit.leaves) == 1:  # what one input has twice, no join has compared yet
                    rest += [(names[0], other) for other in names[1:]]
        bounds = [self._older(left, right), self._older(right, left)]
        if bounds[0] is None or bounds[1] is None:
            return None
        members = (*left.leaves, *right.leaves)
        conditions = (*self._take(members), *equalities(self._graph, rest), *bounds[0][1], *bounds[1][1])
        plan = WindowJoin(
            left.plan,
            right.plan,
            bounds[0][0],
            bounds[1][0],
            tuple((self._own(left, one), self._own(right, other)) for one, other in keys),
            in_order_of_text(conditions),
            left.prefix,
            right.prefix,
        )
        return _Unit(members, plan, None)

    @staticmethod
    def _own(unit: _Unit, name: str) -> str:
        return name if unit.prefix is None else name.removeprefix(f"{unit.prefix}.")

    def _older(self, unit: _Unit, other: _Unit) -> tuple[Window, list[Expression]] | None:
        """The window of a unit beside another one; for several inputs the longest of theirs, and conditions that each
        is within its own. None if times cannot be compared."""
        leaves = [self._leaf(i) for i in unit.leaves]
        if len(leaves) == 1:
            return leaves[0].window, []
        if any(leaf.window.rows is not None for leaf in leaves):
            return None
        conditions: list[Expression] = []
        for leaf in leaves:
            for newer in map(self._leaf, other.leaves):
                if leaf.window.range is None:
                    continue
                times = leaf.time, newer.time
                if times[0] is None or times[1] is None or times[0].type is not times[1].type:
                    return None
                conditions.append(within(times[0], times[1], leaf.window.range))
        return widest([leaf.window.range for leaf in leaves]), conditions

    def _take(self, members: Sequence[int]) -> list[Expression]:
        """The conditions that these inputs have all columns of."""
        ready = [c for c in self._waiting if self._graph.reads(c) <= set(members)]
        self._waiting = [c for c in self._waiting if c not in ready]
        return ready
