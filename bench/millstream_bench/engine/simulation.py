"""A query graph in virtual time: arrivals happen when they are due, and work takes time.

Each operator takes `cost` microseconds per tuple or punctuation. A timestamp written over an arc of the enhanced query
graph costs `ets_cost` at the operator that receives it; one sent in band costs as much as a tuple at every operator on
its way. Backtracking is free. Tuples that arrive while an operator works are in the buffers when it is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from millstream.algebra.clock import VirtualClock
from millstream.algebra.element import Element, Page
from millstream.algebra.schema import TS
from millstream.runtime.engine import Graph, OperatorNode, Source
from millstream_bench.engine.workload import SCHEMA


@dataclass(slots=True)
class Measured:
    """Time of each output, its latency (microseconds), and counts."""

    times: list[int] = field(default_factory=list)
    latencies: list[int] = field(default_factory=list)
    idle_micros: int = 0
    total_micros: int = 0
    peak: int = 0
    ets: int = 0
    steps: int = 0

    @property
    def mean_latency(self) -> float | None:
        """Mean latency in milliseconds; None without output."""
        return float(np.mean(self.latencies)) / 1000 if self.latencies else None

    @property
    def idle_share(self) -> float:
        return self.idle_micros / self.total_micros if self.total_micros else 0.0


class Simulation:
    def __init__(self, mode: str, strategy: str, *, cost: int, ets_cost: int = 0) -> None:
        self.clock = VirtualClock()
        self.graph = Graph()
        self.graph.set_ets(mode)
        self.graph.set_strategy(strategy)
        self.cost, self.ets_cost = cost, ets_cost
        self.measured = Measured()
        self.watched: OperatorNode | None = None
        """The operator whose idle-waiting is measured."""
        self.graph.on_step = lambda _, tuples: self._work(tuples * cost)
        if ets_cost and mode == "eqg":
            self.graph.trace = self._pay_for_time
        self._feeds: list[tuple[Source, pl.DataFrame]] = []
        self._beats: list[tuple[Source, np.ndarray]] = []
        self._events: list[tuple[int, int, int]] = []
        self._next = 0
        self._due = 0

    def source(self, name: str, arrivals: pl.DataFrame) -> Source:
        made = self.graph.source(name, SCHEMA, lambda _: self._due)
        self._feeds.append((made, arrivals))
        return made

    def beat(self, source: Source, times: np.ndarray) -> None:
        """Schedule heartbeats of a source at these times."""
        self._beats.append((source, times))

    def sink(self, node: OperatorNode) -> None:
        self.graph.sink(node, self._deliver)

    def run(self) -> Measured:
        """Run until all arrivals are processed."""
        self._events = sorted(
            [(int(t), feed, row) for feed, (_, frame) in enumerate(self._feeds) for row, t in enumerate(frame[TS])]
            + [(int(t), -1 - beat, 0) for beat, (_, times) in enumerate(self._beats) for t in times]
        )
        while self._next < len(self._events):
            self._pass_time(max(self.clock.now(), self._events[self._next][0]))
            self.graph.run()
        self.measured.total_micros = self.clock.now()
        self.measured.peak = self.graph.ledger.peak
        self.measured.ets = sum(source.counters.ets for source in self.graph.sources.values())
        self.measured.steps = self.graph.steps
        return self.measured

    def _work(self, micros: int) -> None:
        self._pass_time(self.clock.now() + micros)

    def _pay_for_time(self, event: tuple[object, ...]) -> None:
        if event[0] in ("ets", "handover"):
            self._work(self.ets_cost)

    def _pass_time(self, until: int) -> None:
        """Move the clock, stopping at every arrival on the way."""
        events = self._events
        while self._next < len(events) and events[self._next][0] <= until:
            due, feed, row = events[self._next]
            self._next += 1
            self._move(due)
            if feed >= 0:
                source, frame = self._feeds[feed]
                self.graph.push(source, Page(frame.slice(row, 1)))
            else:
                self.graph.heartbeat([self._beats[-1 - feed][0]])
        self._move(until)

    def _move(self, to: int) -> None:
        now = self.clock.now()
        if to > now:
            if self.watched is not None:
                ports = self.watched.ports
                if any(port.unread for port in ports) and not all(port.unread for port in ports):
                    self.measured.idle_micros += to - now
            self.clock.at = to
        self._due = max(self._due, to)

    def _deliver(self, element: Element) -> None:
        if isinstance(element, Page):
            now = self.clock.now()
            self.measured.times.append(now)
            self.measured.latencies.append(now - element.first)


def fig1(simulation: Simulation, first: pl.DataFrame, second: pl.DataFrame, *, latent: bool = False) -> list[Source]:
    """Two streams, each through a selection that passes 95 %, into a union."""
    from millstream_bench.engine.operators import Keep, Merge, Mix

    graph = simulation.graph
    sources = [simulation.source("S1", first), simulation.source("S2", second)]
    selected = [graph.add(Keep(0.95), [source], name=f"select{i + 1}") for i, source in enumerate(sources)]
    union = graph.add(Mix() if latent else Merge(), selected, name="union")
    simulation.sink(union)
    simulation.watched = union
    return sources
