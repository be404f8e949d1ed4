"""What a join costs, and what it holds: one operator for n inputs against a tree of joins of two.

The model is that of punctuated window joins (Eq. 6.1 in its corrected form, 6.2 to 6.6, 7.1). Rates are per second,
windows in seconds; costs are in units of looking at one tuple.

| | |
|---|---|
| γ | lag of punctuation: its arrival after a value's first tuple, in lifespans L of the value; None: there is none |
| mean lifetime | of a tuple in state, by γ, L and the window: Eq. 6.1 |
| state | rate times mean lifetime |
| α | share of tuples that are never stored: `1 - γ` between 0 and 1 |

An n-way join looks once at the shared key index per tuple, keeps its inputs and builds results of n parts. A tree looks
at the opposite state in every join that a tuple or a partial result comes to, and builds and keeps partial results. In
a tree a condition that is not an equality of keys drops partial results early; in an n-way join it drops whole ones.

>>> round(mean_lifetime(0.8, 10, 5), 2), round(mean_lifetime(1.5, 10, 9), 2)
(2.75, 8.2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.algebra.expression import Expression, conjuncts
from millstream.algebra.window import Window
from millstream.logical.join.graph import JoinGraph, Leaf, join_graph
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan

RATE = 1000.0
"""Tuples per second, where nothing is known."""
HORIZON = 600.0
"""Seconds that tuples without a window are taken to stay."""
KEYS = 10_000.0
"""Different values of a common attribute, where nothing is known."""
KEPT = 1 / 3
"""The share of results that a condition is taken to let pass."""


MATCH = INSERT = DELETE = SCHEDULE = UNSCHEDULE = BUILD = 1.0
"""C_E, C_I^t and C_D^t, C_I^p and C_D^p, and C_J for one part of a result."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What is known of an input: λ, W, and for its punctuation λ_p, γ, L and β (the share that has to be scheduled)."""

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
    """How long a tuple stays in state on average (Eq. 6.1)."""
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
    """The share of tuples that are purged as they come (α)."""
    return max(0.0, 1 - lag) if lag >= 0 else 1.0


def input_cost(flow: Flow, held: float, buckets: float, alike: float) -> float:
    """Of all that one input brings in a second (Eq. 6.4 and 6.5; with n inputs 7.1), without building results: `held`
    tuples of all inputs, `alike` of which share a value. Of one tuple it is Eq. 6.2, of one punctuation Eq. 6.3."""
    looking = held / (2 * buckets * alike) * MATCH
    stored = 1.0 if flow.lag is None else 1 - on_the_fly(flow.lag)
    one_tuple = looking + 2 * stored * (INSERT + DELETE)
    return flow.rate * one_tuple + flow.punctuations * (looking + flow.scheduled * (SCHEDULE + UNSCHEDULE))


def hash_cost(flow: Flow, other: Flow, buckets: float) -> float:
    """Of all that one side of a hash window join brings in a second (Eq. 6.6), without building results."""
    return flow.rate * (other.state / buckets * MATCH + INSERT + DELETE)


def nway(flows: Sequence[Flow], keys: float = KEYS) -> Estimate:
    """One operator for all inputs; whatever the conditions are, it builds all results with equal keys."""
    held = sum(flow.state for flow in flows)
    alike = max(1.0, held / keys)
    work = sum(input_cost(flow, held, keys, alike) for flow in flows)
    return Estimate(work + _results(flows, keys) * len(flows) * BUILD, held)


def tree(flows: Sequence[Flow], conditions: Sequence[frozenset[int]] = (), keys: float = KEYS) -> Estimate:
    """Joins of two, from left to right; a condition, given by the inputs that it reads, is applied where they meet."""
    left, work, held = flows[0], 0.0, flows[0].state
    for place, right in enumerate(flows[1:], start=1):
        work += hash_cost(left, right, keys) + hash_cost(right, left, keys)
        built = _results([left, right], keys)
        work += built * (place + 1) * BUILD
        met = sum(place in reads and reads <= set(range(place + 1)) for reads in conditions)
        left = Flow(built * KEPT**met, max(left.window, right.window))
        held += right.state + (left.state if place + 1 < len(flows) else 0.0)
    return Estimate(work, held)


def _results(flows: Sequence[Flow], keys: float) -> float:
    """Results per second: each tuple meets the tuples of its key that the other inputs hold."""
    made = 0.0
    for place, flow in enumerate(flows):
        found = flow.rate
        for other in (*flows[:place], *flows[place + 1 :]):
            found *= other.state / keys
        made += found
    return made


def flow_of(leaf: Leaf) -> Flow:
    """What is known of an input from its plan."""
    return Flow(window=_seconds(leaf.window, leaf.plan.schema.unit))


def _seconds(window: Window, unit: int) -> float:
    if window.rows is not None:
        return window.rows / RATE
    return HORIZON if window.range is None else window.range / unit


def compared(graph: JoinGraph, group: Sequence[int]) -> tuple[Estimate, Estimate]:
    """The costs of some inputs with a common attribute: in one operator, and as a tree in their order."""
    flows = [flow_of(graph.leaves[i]) for i in group]
    place = {leaf: number for number, leaf in enumerate(group)}
    inside = [_placed(graph, condition, place) for condition in graph.residual]
    conditions = [reads for reads in inside if reads]
    return nway(flows), tree(flows, conditions)


def costs(plan: Plan) -> str | None:
    """Both costs of a join of several inputs on a common attribute, whichever of both it is; None if it is none."""
    if isinstance(plan, MultiJoin):
        leaves = tuple(map(Leaf, plan.members, plan.prefixes, plan.windows))
        one, tree_ = compared(JoinGraph(leaves, plan.equal, conjuncts(plan.residual)), range(len(leaves)))
        if any(window.rows is not None for window in plan.windows[:-1]):
            return f"costs {one}; a tree cannot count rows"
        return f"costs {one}; as a tree {tree_}"
    graph = join_graph(plan) if isinstance(plan, WindowJoin) else None
    groups = graph.groups() if graph is not None else ()
    if graph is None or not groups:
        return None
    one, tree_ = compared(graph, groups[0])
    return f"costs {tree_}; in one operator {one}"


def _placed(graph: JoinGraph, condition: Expression, place: dict[int, int]) -> frozenset[int]:
    reads = graph.reads(condition)
    return frozenset(place[i] for i in reads) if reads <= place.keys() else frozenset()
