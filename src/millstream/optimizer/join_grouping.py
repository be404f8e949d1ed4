"""Joins of three inputs or more on a common attribute become one MultiJoin.

    WindowJoin [RANGE 6], c [RANGE 7] ON a.k = c.k WHERE …       MultiJoin a [RANGE 5], b [RANGE 6], c [RANGE 7]
    ├─ WindowJoin a [RANGE 5], b [RANGE 6] ON a.k = b.k     →              ON a.k = b.k = c.k
    │  ├─ Scan a                                                 ├─ Scan a
    │  └─ Scan b                                                 ├─ Scan b
    └─ Scan c                                                    └─ Scan c

Inputs are grouped by the attributes that are equal over them, the largest group first. Each group that is cheaper as a
MultiJoin than as a tree (`join.cost`) becomes one. The groups and the remaining inputs are joined pairwise, in the
order of their first inputs. A projection restores the order of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.algebra.expression import Expression
from millstream.algebra.window import Window, widest
from millstream.logical.join.cost import compared
from millstream.logical.join.graph import JoinGraph, JoinInput, join_graph, within
from millstream.logical.join.multi_join import equalities, in_order_of_text, multi_join
from millstream.logical.nodes.project import narrowed
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context

ALWAYS, NEVER = "always", "never"


def group_joins(plan: Plan, context: Context) -> Plan:
    """Return the plan with trees of joins on a common attribute replaced by a MultiJoin where that is cheaper."""
    return plan if context.multi_join == NEVER else _grouped(plan, always=context.multi_join == ALWAYS)


def _grouped(plan: Plan, *, always: bool) -> Plan:
    if isinstance(plan, WindowJoin):
        regrouped = _regrouped(plan, always=always)
        if regrouped is not None and same(regrouped, plan):
            return regrouped
    inputs = tuple(_grouped(input_, always=always) for input_ in plan.inputs)
    return plan.with_inputs(inputs) if inputs != plan.inputs else plan


def same(one: Plan, other: Plan) -> bool:
    """True if two plans have the same schema; what else follows time depends on the shape of a tree."""
    return replace(one.schema, follows=(), offsets=()) == replace(other.schema, follows=(), offsets=())


def _regrouped(plan: WindowJoin, *, always: bool) -> Plan | None:
    graph = join_graph(plan)
    if graph is None:
        return None
    costs = [(group, *compared(graph, group)) for group in graph.groups()]
    chosen = [group for group, one, tree in costs if always or one.cost <= tree.cost]
    if not chosen:
        return None
    inputs = tuple(replace(input_, plan=_grouped(input_.plan, always=always)) for input_ in graph.inputs)
    joined = Joiner(JoinGraph(inputs, graph.equal, graph.residual)).join(chosen)
    return None if joined is None else narrowed(joined, plan.schema.names)


@dataclass(frozen=True, slots=True)
class _Unit:
    """One or more inputs, joined."""

    members: tuple[int, ...]
    plan: Plan
    prefix: str | None


class Joiner:
    """Joins the inputs of a graph, group by group. The lowest join with all its columns takes a condition."""

    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._waiting = list(graph.residual)

    def join(self, groups: Sequence[tuple[int, ...]]) -> Plan | None:
        grouped = {i for group in groups for i in group}
        alone = [(i,) for i in range(len(self._graph.inputs)) if i not in grouped]
        whole: _Unit | None = None
        for members in sorted([*groups, *alone]):
            unit = self._unit(members)
            whole = unit if whole is None else self._pair(whole, unit)
            if whole is None:
                return None
        assert whole is not None
        return whole.plan

    def _inputs(self, unit: _Unit) -> list[JoinInput]:
        return [self._graph.inputs[i] for i in unit.members]

    def _unit(self, members: tuple[int, ...]) -> _Unit:
        if len(members) == 1:
            alone = self._graph.inputs[members[0]]
            return _Unit(members, alone.plan, alone.prefix)
        return _Unit(members, multi_join(self._graph, members, self._take(members)), None)

    def _pair(self, left: _Unit, right: _Unit) -> _Unit | None:
        keys: list[tuple[str, str]] = []
        rest: list[tuple[str, str]] = []
        for equal in self._graph.equal:
            sides = [[name for name in equal if self._graph.owner[name] in unit.members] for unit in (left, right)]
            if all(sides):
                keys.append((sides[0][0], sides[1][0]))
            for unit, names in zip((left, right), sides, strict=True):
                if len(unit.members) == 1:  # no join has compared equal columns of one input yet
                    rest += [(names[0], other) for other in names[1:]]
        left_bound, right_bound = self._window(left, right), self._window(right, left)
        if left_bound is None or right_bound is None:
            return None
        members = (*left.members, *right.members)
        conditions = (*self._take(members), *equalities(self._graph, rest), *left_bound[1], *right_bound[1])
        plan = WindowJoin(
            left.plan,
            right.plan,
            left_bound[0],
            right_bound[0],
            tuple((self._own(left, one), self._own(right, other)) for one, other in keys),
            in_order_of_text(conditions),
            left.prefix,
            right.prefix,
        )
        return _Unit(members, plan, None)

    @staticmethod
    def _own(unit: _Unit, name: str) -> str:
        return name if unit.prefix is None else name.removeprefix(f"{unit.prefix}.")

    def _window(self, unit: _Unit, other: _Unit) -> tuple[Window, list[Expression]] | None:
        """Return the window of a unit in a join with another. For several inputs it is the longest of theirs, with
        conditions that each input is within its own. None if times cannot be compared."""
        inputs = self._inputs(unit)
        if len(inputs) == 1:
            return inputs[0].window, []
        if any(input_.window.rows is not None for input_ in inputs):
            return None
        conditions: list[Expression] = []
        for input_ in inputs:
            if input_.window.range is None:
                continue
            for newer in self._inputs(other):
                if input_.time is None or newer.time is None or input_.time.type is not newer.time.type:
                    return None
                conditions.append(within(input_.time, newer.time, input_.window.range))
        return widest([input_.window.range for input_ in inputs]), conditions

    def _take(self, members: Sequence[int]) -> list[Expression]:
        """Remove and return the conditions that read only these inputs."""
        ready = [c for c in self._waiting if self._graph.reads(c) <= set(members)]
        self._waiting = [c for c in self._waiting if c not in ready]
        return ready
