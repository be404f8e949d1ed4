"""Components of a graph, places to break it into fragments, and the strategies of its operators.

A break makes a buffer the end of one fragment and the start of the next; each fragment is scheduled by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from millstream.runtime.engine.nodes import OperatorNode
from millstream.strategies import Owner, Schedule, Strategy

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


def set_schedule(graph: Graph, schedule: Schedule, owners: Mapping[str, Collection[Owner]]) -> None:
    """Give every operator its strategy and set its break; `owners` has the queries of each operator. If an operator
    needs paths, the whole graph is cut into paths."""
    graph.set_strategy(schedule.default)
    chosen: dict[Strategy, list[str]] = {}
    for name, own in owners.items():
        chosen.setdefault(schedule.strategy(own), []).append(name)
    for strategy, names in chosen.items():
        if strategy != schedule.default:
            graph.set_strategy(strategy, names)
    broken = {graph.operators[name] for name, own in owners.items() if schedule.breaks(own)}
    if any(node.strategy.rules.paths for node in graph.operators.values()):
        broken |= set(canonical_cut(graph.operators.values()))
    for node in graph.operators.values():
        if node.buffer.broken != (node in broken):
            graph.set_break(node, broken=node in broken)


def canonical_cut(operators: Iterable[OperatorNode]) -> list[OperatorNode]:
    """Return the operators to break after so that only paths are left: those that an operator with several inputs
    reads, and those that several operators read."""
    cut: dict[OperatorNode, None] = {}
    for node in operators:
        if len(node.buffer.ports) > 1:
            cut[node] = None
        if len(node.ports) > 1:
            producers = [port.buffer.producer for port in node.ports]
            cut.update({p: None for p in producers if isinstance(p, OperatorNode)})
    return list(cut)


def components(operators: Iterable[OperatorNode]) -> dict[OperatorNode, int]:
    """Return the connected components of a graph, numbered in the order of their first operators."""
    found: dict[OperatorNode, int] = {}
    for first in operators:
        number, todo = len(set(found.values())), [first]
        while todo:
            node = todo.pop()
            if node not in found:
                found[node] = number
                todo += [port.node for port in node.buffer.ports]
                todo += [reader.node for port in node.ports for reader in port.buffer.ports]
                todo += [p for port in node.ports if isinstance(p := port.buffer.producer, OperatorNode)]
    return found
