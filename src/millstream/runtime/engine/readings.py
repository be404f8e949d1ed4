"""Readings of a whole graph: what each of its nodes has counted and holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.runtime.engine import guarding
from millstream.runtime.engine.statistics import NodeStatistics, reading

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


def of_graph(graph: Graph) -> dict[str, NodeStatistics]:
    """Return a reading of every node, by name."""
    readings = [reading(s.name, "source", s.counters, buffered=len(s.buffer)) for s in graph.sources.values()]
    for node in graph.operators.values():
        operator, buffered = node.operator, sum(port.size() for port in node.ports)
        kind, state = type(operator).__name__, operator.state_rows()
        held = {"buffered": buffered, "state": state, "late": operator.late, "pruned": operator.pruned}
        held |= {"aside": operator.aside, "shed": operator.shed}
        guards = guarding.written(*node.ports)
        tests, macro = guarding.readings(*node.ports), node.row.transition
        readings.append(reading(node.name, kind, node.counters, **held, macro=macro, guards=guards, tests=tests))
    for s in graph.sinks.values():
        readings.append(reading(s.name, "sink", s.counters, guards=guarding.written(s), tests=guarding.readings(s)))
    return {r.name: r for r in readings}
