"""The scheduler loop: activate operators until nothing changes.

Operators with input are activated first: those next to a source before others, then the one with the oldest element.
If several components of the graph have input, each gets a turn of `TURN` steps, so that none waits until another has
processed all of its input; a walk goes on where it paused. When no input is left, each idle-waiting operator is
activated, so that the walk can ask sources for time. Where a break or round robin ends that walk early, the scheduler
carries the question across fragments itself; it does the same for an outer join that waits to pad its tuples. At last
every operator with several inputs learns how far their time has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.runtime.engine import upstream
from millstream.runtime.engine.execution import step_without_input
from millstream.runtime.engine.nodes import OperatorNode, Source
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.taking import UNLIMITED
from millstream.runtime.engine.timestamps import REQUEST, EtsMode, hand_over
from millstream.runtime.engine.walk import Walk

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph

TURN = 64
"""Steps of a component before another one with input gets its turn."""


def run(graph: Graph) -> None:
    """Run until no operator can continue and nothing is deferred, or the graph's step limit is reached."""
    _run_until_quiet(graph)
    while graph.deferred and graph.steps < graph.step_limit:
        graph.deferred.pop()()
        _run_until_quiet(graph)


def _run_until_quiet(graph: Graph) -> None:
    asked = not graph.on_demand
    while True:
        _drain(graph)
        if not asked and graph.steps < graph.step_limit:
            asked = True
            if _ask_for_held(graph):
                _drain(graph)
        emitted = [step_without_input(graph, node) for node in list(graph.operators.values())]
        if graph.steps >= graph.step_limit or not any(emitted):
            return


def _process_input(graph: Graph) -> None:
    """Activate operators with input, by turns of the components that they belong to, until there is none."""
    paused: dict[int, Walk] = {}
    while entries := _entries(graph):
        for component, entry in entries.items():
            if graph.steps >= graph.step_limit:
                return
            walk, steps = paused.pop(component, None), TURN if len(entries) > 1 else UNLIMITED
            if walk is not None and walk.paused:
                walk.resume(steps)
            elif entry.more():
                walk = Walk(graph)
                walk.activate(entry, steps)
            if walk is not None and walk.paused:
                paused[component] = walk


def _drain(graph: Graph) -> None:
    fruitless = 0
    while True:
        consumed = graph.consumed
        _process_input(graph)
        if graph.steps >= graph.step_limit or not graph.on_demand:
            return
        drained, writes = graph.consumed, graph.writes
        for node in list(graph.waiting):
            if graph.steps >= graph.step_limit:
                return
            _wake(graph, node)
        if graph.consumed == drained and graph.writes == writes:
            return
        # A time that freed no operator may free one in the next round: it moves down one operator a round.
        fruitless = 0 if graph.consumed > consumed else fruitless + 1
        if fruitless > len(graph.operators):
            return


def _ask_for_held(graph: Graph) -> bool:
    """Ask for time where an operator with several inputs holds back results that only time releases. Such an operator
    still takes input, so no walk asks for it. Return whether some source promised time."""
    writes = graph.writes
    for node in list(graph.operators.values()):
        if len(node.ports) > 1 and node.waiting():
            graph.arcs()
            _ask_across(graph, node, set())
    return graph.writes > writes


def _entries(graph: Graph) -> dict[int, OperatorNode]:
    """Return the operator to activate in each component that has input."""
    ready, components = graph.ledger.ready, graph.components()
    best: dict[int, tuple[tuple[bool, int], OperatorNode]] = {}
    for node in list(ready):
        if not node.more():
            del ready[node]
            if node.prone:
                graph.waiting[node] = None
            continue
        key, component = (not node.at_source, node.arrival()), components[node]
        if component not in best or key < best[component][0]:
            best[component] = key, node
    return {component: node for component, (_, node) in best.items()}


def _wake(graph: Graph, node: OperatorNode) -> None:
    """Activate an idle-waiting operator."""
    if not node.idle():
        graph.waiting.pop(node, None)
        return
    consumed = graph.consumed
    Walk(graph).activate(node)
    if graph.has_cuts and graph.consumed == consumed and node.idle():
        _ask_across(graph, node, set())


def _ask_across(graph: Graph, node: OperatorNode, seen: set[OperatorNode | Source]) -> None:
    """Ask the sources before every lagging port for time, across breaks, and hand it down."""
    seen.add(node)
    for port in sorted(node.ports, key=Port.bound):
        arc = port.arc
        if arc is None or arc.origin in seen:
            continue
        if isinstance(arc.origin, Source):
            seen.add(arc.origin)
            upstream.deliver(graph, arc.origin, REQUEST)
        else:
            _ask_across(graph, arc.origin, seen)
            if graph.ets_mode is EtsMode.EQG and not arc.origin.more():
                graph.writes += len(hand_over(arc.origin)[1])
