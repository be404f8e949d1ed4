"""Readings of a whole graph: what each of its nodes has counted and holds, and what operators report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millstream.runtime.engine import guarding
from millstream.runtime.engine.statistics import Counters, NodeStatistics, reading
from millstream.runtime.operator.capabilities import Counts, Reports

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph

ByStem = dict[str, dict[str, Any]]
"""What operators report, by stem and by the name of the node."""


def of_graph(graph: Graph) -> dict[str, NodeStatistics]:
    """Return a reading of every node, by name."""
    readings = [reading(s.name, "source", s.counters, buffered=len(s.buffer)) for s in graph.sources.values()]
    for node in graph.operators.values():
        operator, buffered = node.operator, sum(port.size() for port in node.ports)
        kind, state = type(operator).__name__, operator.state_rows()
        held = {"buffered": buffered, "state": state, **(operator.counts() if isinstance(operator, Counts) else {})}
        guards = guarding.written(*node.ports)
        tests, macro = guarding.readings(*node.ports), node.row.transition
        readings.append(reading(node.name, kind, node.counters, **held, macro=macro, guards=guards, tests=tests))
    for s in graph.sinks.values():
        readings.append(reading(s.name, "sink", s.counters, guards=guarding.written(s), tests=guarding.readings(s)))
    return {r.name: r for r in readings}


def reports(graph: Graph) -> ByStem:
    """Return what the driver needs after a batch."""
    return _reported(graph, lambda operator, _: operator.report())


def summaries(graph: Graph) -> ByStem:
    """Return what progress and metrics show."""
    return _reported(graph, lambda operator, counters: operator.summary(counters))


def _reported(graph: Graph, of: Callable[[Reports, Counters], Any]) -> ByStem:
    found: ByStem = {}
    for name, node in graph.operators.items():
        if node.reports is not None and (value := of(node.reports, node.counters)) is not None:
            found.setdefault(node.operator.stem, {})[name] = value
    return found
