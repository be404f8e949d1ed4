"""Which sources a graph waits for, read off its registers once nothing moves.

A waiting operator needs the time of its inputs to reach some value. Going back over the arcs from the inputs that have
not reached it, every source there has a level: the highest time that any input on the way has reached. The operator
waits for the sources below the time that it needs, or, if it is held back by less than that, for the lowest ones. An
operator does not ask while an operator before it waits for an earlier time: that one is released first.

The demand depends on the state of the graph alone, not on the walks that led to it, so it is the same for every
strategy. Shards and stages report their parts of it (`Demand`, `Lag`), and the driver puts them together.

>>> awaited(10, {"a": 7, "b": 12}), awaited(5, {"a": 7, "b": 6})
({'a'}, {'b'})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from millstream.algebra.schema import FOREVER
from millstream.runtime.engine.nodes import OperatorNode, Source
from millstream.runtime.engine.port import Port

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph

NOT_AT_ALL = FOREVER + 1
"""Later than any time that an operator waits for."""
Levels = dict[str, int]
"""The level of each source, by name."""


class Demand(NamedTuple):
    """An operator waits for its inputs to reach `time`; `levels`: the sources of the inputs that have not."""

    time: int
    levels: Levels


class Lag(NamedTuple):
    """What the time of an input depends on: the sources behind it, and the earliest time that an operator on the way
    waits for itself."""

    held: int
    levels: Levels


def awaited(time: int, levels: Mapping[str, int]) -> set[str]:
    """Return the sources that an operator waits for."""
    lowest = min(levels.values(), default=time)
    return {name for name, level in levels.items() if level < max(time, lowest + 1)}


def merged(lags: Iterable[Lag]) -> Lag:
    """Return the lag of several inputs together; a source has the lowest of its levels."""
    held, levels = NOT_AT_ALL, Levels()
    for lag in lags:
        held = min(held, lag.held)
        for name, level in lag.levels.items():
            levels[name] = min(level, levels.get(name, level))
    return Lag(held, levels)


def raised(lag: Lag, bound: int) -> Lag:
    """Return a lag behind an input that has reached a time."""
    return Lag(lag.held, {name: max(bound, level) for name, level in lag.levels.items()})


def demands(graph: Graph) -> dict[str, Demand]:
    """Return what the operators of a graph wait for, by operator."""
    graph.arcs()
    known: dict[OperatorNode, Lag] = {}
    found: dict[str, Demand] = {}
    for node in graph.operators.values():
        ports = node.lagging()
        if ports:
            lag, time = merged(_behind(port, known) for port in ports), node.needs()
            if lag.levels and lag.held > time:
                found[node.name] = Demand(time, lag.levels)
    return found


def lag_of(graph: Graph, node: OperatorNode) -> Lag:
    """Return what the time of an operator's output depends on."""
    graph.arcs()
    return _lag(node, {})


def _behind(port: Port, known: dict[OperatorNode, Lag]) -> Lag:
    if port.arc is None:
        return Lag(NOT_AT_ALL, {})
    origin, bound = port.arc.origin, port.bound()
    if isinstance(origin, Source):
        return Lag(NOT_AT_ALL, {origin.name: bound})
    return raised(_lag(origin, known), bound)


def _lag(node: OperatorNode, known: dict[OperatorNode, Lag]) -> Lag:
    if node not in known:
        before = merged(_behind(port, known) for port in node.ports)
        known[node] = Lag(min(before.held, node.needs()), before.levels) if node.lagging() else before
    return known[node]
