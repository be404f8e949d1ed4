"""Cost and state of a join of n inputs: one MultiJoin, or a tree of binary joins.

The model is that of punctuated window joins (Eq. 6.1 in its corrected form, 6.2 to 6.6, 7.1). Rates are per second,
windows in seconds; costs are in units of looking at one tuple.

| | |
|---|---|
| γ | lag of punctuation: its arrival after a value's first tuple, in lifespans L of the value; None without any |
| mean lifetime | of a tuple in state, from γ, L and the window: Eq. 6.1 |
| state | rate times mean lifetime |
| α | share of tuples that are never stored: `1 - γ` between 0 and 1 |

A MultiJoin probes the shared key index once per tuple, holds its inputs and builds results of n parts. A tree probes
the opposite state in every join that a tuple or a partial result reaches, and builds and holds partial results. In a
tree a condition that is not an equality of keys drops partial results early; in a MultiJoin it drops whole results.

>>> round(mean_lifetime(0.8, 10, 5), 2), round(mean_lifetime(1.5, 10, 9), 2)
(2.75, 8.2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from millstream.algebra.expression import conjuncts
from millstream.logical.join.graph import JoinGraph, JoinInput, join_graph
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan

RATE = 1000.0
"""Tuples per second, if unknown."""
HORIZON = 600.0
"""Seconds that tuples without a window are assumed to stay."""
KEYS = 10_000.0
"""Different values of a common attribute, if unknown."""
KEPT = 1 / 3
"""The share of results that a condition is assumed to let pass."""

MATCH = INSERT = DELETE = SCHEDULE = UNSCHEDULE = BUILD = 1.0
"""C_E, C_I^t and C_D^t, C_I^p and C_D^p, and C_J for one part of a result."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Statistics of an input: λ, W, and for its punctuation λ_p, γ, L and β (the share that has to be scheduled)."""

    rate: float = RATE
    window: float = HORIZON
    punctuations: float = 0.0
    lag: float | None = None
    lifespan: float = HORIZON
    scheduled: float = 1.0

    @property
    def state(self) -> float:
        return self.rate * (self.window if self.lag is None else mean_lifetime(self.lag, self.lifespan, self.window))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost per second, and tuples and partial results held."""

    cost: float
    held: float

    def __str__(self) -> str:
        return f"{self.cost:,.0f} comparisons per second, holding {self.held:,.0f} tuples"


def mean_lifetime(lag: float, lifespan: float, window: float) -> float:
    """Return the mean time of a tuple in state (Eq. 6.1)."""
    if lag <= 0:
        return 0.0
    if lag <= 1:
        if window <= lag * lifespan:
            return lag * window - window**2 / (2 * lifespan)
        return lag**2 * lifespan / 2
    if (lag - 1) * lifespan >= window:
        return window
    if window <= lag * lifespan:
        return lag * window - (window**2 / lifespan + (lag - 1) ** 2 * lifespan) / 2
    return (lag - 0.5) * lifespan


def on_the_fly(lag: float) -> float:
    """Return the share of tuples that are purged on arrival (α)."""
    return max(0.0, 1 - lag) if lag >= 0 else 1.0


def input_cost(flow: Flow, held: float, buckets: float, alike: float) -> float:
    """Return the cost per second of one input (Eq. 6.4 and 6.5; with n inputs 7.1), without building results. All
    inputs hold `held` tuples, `alike` of which share a value. One tuple costs Eq. 6.2, one punctuation Eq. 6.3."""
    probe = held / (2 * buckets * alike) * MATCH
    stored = 1.0 if flow.lag is None else 1 - on_the_fly(flow.lag)
    one_tuple = probe + 2 * stored * (INSERT + DELETE)
    return flow.rate * one_tuple + flow.punctuations * (probe + flow.scheduled * (SCHEDULE + UNSCHEDULE))


def hash_cost(flow: Flow, other: Flow, buckets: float) -> float:
    """Return the cost per second of one side of a hash window join (Eq. 6.6), without building results."""
    return flow.rate * (other.state / buckets * MATCH + INSERT + DELETE)


def multi_join_cost(flows: Sequence[Flow], keys: float = KEYS) -> Estimate:
    """Estimate one MultiJoin of all inputs; whatever the conditions, it builds all results with equal keys."""
    held = sum(flow.state for flow in flows)
    alike = max(1.0, held / keys)
    work = sum(input_cost(flow, held, keys, alike) for flow in flows)
    return Estimate(work + _results(flows, keys) * len(flows) * BUILD, held)


def tree_cost(flows: Sequence[Flow], conditions: Sequence[frozenset[int]] = (), keys: float = KEYS) -> Estimate:
    """Estimate binary joins from left to right. A condition, given by the inputs that it reads, is applied by the first
    join of all of them."""
    left, work, held = flows[0], 0.0, flows[0].state
    for place, right in enumerate(flows[1:], start=1):
        work += hash_cost(left, right, keys) + hash_cost(right, left, keys)
        built = _results([left, right], keys)
        work += built * (place + 1) * BUILD
        applied = sum(place in reads and reads <= set(range(place + 1)) for reads in conditions)
        left = Flow(built * KEPT**applied, max(left.window, right.window))
        held += right.state + (left.state if place + 1 < len(flows) else 0.0)
    return Estimate(work, held)


def _results(flows: Sequence[Flow], keys: float) -> float:
    """Return results per second: each tuple meets the tuples of its key that the other inputs hold."""
    places = range(len(flows))
    return sum(prod((flows[j].state / keys for j in places if j != i), start=flows[i].rate) for i in places)


def _flow(input_: JoinInput) -> Flow:
    """Return the statistics of an input, as far as its plan tells them."""
    window = input_.window
    if window.rows is not None:
        return Flow(window=window.rows / RATE)
    return Flow() if window.range is None else Flow(window=window.range / input_.plan.schema.unit)


def compared(graph: JoinGraph, group: Sequence[int]) -> tuple[Estimate, Estimate]:
    """Estimate some inputs with a common attribute: as one MultiJoin, and as a tree in their order."""
    flows = [_flow(graph.inputs[i]) for i in group]
    place = {i: number for number, i in enumerate(group)}
    reads = [graph.reads(condition) for condition in graph.residual]
    conditions = [frozenset(place[i] for i in inputs) for inputs in reads if inputs and inputs <= place.keys()]
    return multi_join_cost(flows), tree_cost(flows, conditions)


def costs(plan: Plan) -> str | None:
    """Return both costs of a join of several inputs on a common attribute, its own first; None for any other node."""
    if isinstance(plan, MultiJoin):
        inputs = tuple(map(JoinInput, plan.members, plan.prefixes, plan.windows))
        one, tree = compared(JoinGraph(inputs, plan.equal, conjuncts(plan.residual)), range(len(inputs)))
        if any(window.rows is not None for window in plan.windows[:-1]):
            return f"costs {one}; a tree cannot count rows"
        return f"costs {one}; as a tree {tree}"
    graph = join_graph(plan) if isinstance(plan, WindowJoin) else None
    groups = graph.groups() if graph is not None else ()
    if graph is None or not groups:
        return None
    one, tree = compared(graph, groups[0])
    return f"costs {tree}; in one operator {one}"
