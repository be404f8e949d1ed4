"""The scheduler loop: activate operators until nothing changes.

Operators with input are activated first, those next to a source before others and the one whose element came first
before all. When none is left, each operator that idle-waits is activated, so that the walk can ask sources for time.
Where a break or round robin ends that walk early, the scheduler carries the question across fragments itself, and so it
does for an outer join that waits to pad its tuples. At last every operator with several inputs hears how far their time
has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.runtime.engine import upstream
from millstream.runtime.engine.execution import settle
from millstream.runtime.engine.nodes import OperatorNode, Source
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.timestamps import REQUEST, EtsMode, hand_over
from millstream.runtime.engine.walk import Walk

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


def run(graph: Graph) -> None:
    """Run until no operator can go on and nothing is owed, or the graph's step limit is reached."""
    _settle(graph)
    while graph.owed and graph.steps < graph.step_limit:
        graph.owed.pop()()
        _settle(graph)


def _settle(graph: Graph) -> None:
    asked = not graph.on_demand
    while True:
        _drain(graph)
        if not asked and graph.steps < graph.step_limit:
            asked = True
            if _ask_for_held(graph):
                _drain(graph)
        spoke = [settle(graph, node) for node in list(graph.operators.values())]
        if graph.steps >= graph.step_limit or not any(spoke):
            return


def _drain(graph: Graph) -> None:
    fruitless = 0
    while True:
        consumed = graph.consumed
        while (entry := _next_entry(graph)) is not None:
            if graph.steps >= graph.step_limit:
                return
            Walk(graph).activate(entry)
        if not graph.on_demand:
            return
        drained, writes = graph.consumed, graph.writes
        for node in list(graph.waiting):
            if graph.steps >= graph.step_limit:
                return
            _wake(graph, node)
        if graph.consumed == drained and graph.writes == writes:
            return
        # Time that was told but freed nobody may free somebody in the next round, one operator further down at a time.
        fruitless = 0 if graph.consumed > consumed else fruitless + 1
        if fruitless > len(graph.operators):
            return


def _ask_for_held(graph: Graph) -> bool:
    """Ask for time, once in a run, where an operator with several inputs holds results back that only time releases:
    it goes on without it, so no walk does; whether some source told it."""
    writes = graph.writes
    for node in list(graph.operators.values()):
        if len(node.ports) > 1 and node.operator.waiting():
            graph.arcs()
            _ask_across(graph, node, set())
    return graph.writes > writes


def _next_entry(graph: Graph) -> OperatorNode | None:
    ready = graph.ledger.ready
    best: OperatorNode | None = None
    best_key = (True, 0)
    for node in list(ready):
        if not node.more():
            del ready[node]
            if node.prone:
                graph.waiting[node] = None
            continue
        key = (not node.at_source, node.arrival())
        if best is None or key < best_key:
            best, best_key = node, key
    return best


def _wake(graph: Graph, node: OperatorNode) -> None:
    """Activate an operator that idle-waits."""
    if not node.idle():
        graph.waiting.pop(node, None)
        return
    consumed = graph.consumed
    Walk(graph).activate(node)
    if graph.has_cuts and graph.consumed == consumed and node.idle():
        _ask_across(graph, node, set())


def _ask_across(graph: Graph, node: OperatorNode, seen: set[OperatorNode | Source]) -> None:
    """Ask the sources before every lagging port for time, whatever breaks lie between, and hand it down."""
    seen.add(node)
    for port in sorted(node.ports, key=Port.bound):
        arc = port.arc
        if arc is None or arc.origin in seen:
            continue
        if isinstance(arc.origin, Source):
            seen.add(arc.origin)
            upstream.reach(graph, arc.origin, REQUEST)
        else:
            _ask_across(graph, arc.origin, seen)
            if graph.ets_mode is EtsMode.EQG and not arc.origin.more():
                graph.writes += len(hand_over(arc.origin)[1])
