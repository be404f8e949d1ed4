"""A running query graph: sources, operators and sinks connected by buffers, and all changes to it.

Operators, breaks, strategies and the way time is promised may be changed between two calls of `run` or from a callback
during a run; data stays in its buffers. One thread drives a graph, so that reading the clock for a promise and
appending a tuple never interleave.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from typing import Any

from millstream.algebra.early import Prod
from millstream.algebra.element import Element
from millstream.algebra.feedback import Feedback
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.response import Respond
from millstream.algebra.schema import FOREVER, NEVER, Schema
from millstream.algebra.upstream import Upstream
from millstream.errors import OptionError, did_you_mean
from millstream.runtime.engine import guarding, prodding, readings, scheduler, snapshot, upstream
from millstream.runtime.engine.breaks import components
from millstream.runtime.engine.buffer import Buffer, Ledger
from millstream.runtime.engine.merge import MergeNode
from millstream.runtime.engine.nodes import (
    ArrivalNode,
    Fork,
    Hear,
    OperatorNode,
    Producer,
    SingleNode,
    Sink,
    Source,
    TimedNode,
)
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.statistics import NodeStatistics
from millstream.runtime.engine.table import NONE, Row, fork_rows, operator_row
from millstream.runtime.engine.taking import UNLIMITED
from millstream.runtime.engine.timestamps import REQUEST, Arc, EtsMode, build_arcs, hand_over
from millstream.runtime.operator.contract import Operator
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS
from millstream.strategies import DFS, Strategy

ENDED = Punctuations.of([Pattern()]).with_progress(FOREVER)
"""The end of a stream: a punctuation that excludes all later tuples."""
Trace = Callable[[tuple[object, ...]], None]
"""Receives ("execute", operator), ("backtrack", from, to), ("fork", fork), ("ets", source, value),
("handover", operator, port, value) and ("exit",)."""


class Graph:
    def __init__(self) -> None:
        self.ledger = Ledger()
        self.sources: dict[str, Source] = {}
        self.operators: dict[str, OperatorNode] = {}
        self.sinks: dict[str, Sink] = {}
        self.waiting: dict[OperatorNode, None] = {}
        """Operators without work that may be idle-waiting."""
        self.deferred: list[Callable[[], None]] = []
        """Calls that operators deferred when they answered a message, in reverse order of execution."""
        self.strategy: Strategy = DFS
        self.page_rows = UNLIMITED
        """Most rows of a page, for operators added from now on. They take longer elements page by page; merging
        operators take as many rows as time allows."""
        self.ets_mode = EtsMode.EQG
        self.on_demand, self.in_band = True, False
        self.trace: Trace | None = None
        self.on_step: Callable[[OperatorNode, int], None] | None = None
        """Called in every execution step with the operator and the number of tuples and punctuations it took."""
        self.version = 0
        self.epoch = 0
        self.steps = 0
        self.step_limit = UNLIMITED
        self.consumed = 0
        self.writes = 0
        self.has_cuts = False
        self._arcs: list[Arc] | None = []
        self._components: tuple[int, dict[OperatorNode, int]] | None = None

    # --- topology -------------------------------------------------------------------------------------------------

    def source(self, name: str, schema: Schema, hear: Hear | None = None) -> Source:
        """Add a source. `hear` receives the messages that reach it; in reply to a time request it returns the
        timestamp that the source can promise now: no later tuple will be older."""
        source = Source(self._free_name(name), schema, hear, self.ledger)
        self.sources[source.name] = source
        self._arcs = None
        return source

    def add(
        self,
        operator: Operator,
        inputs: Sequence[Producer],
        name: str | None = None,
        ordered: Sequence[bool] | None = None,
        respond: Respond | None = None,
        standing: Sequence[Feedback] = (),
    ) -> OperatorNode:
        """Add an operator that reads these nodes from now on. `ordered`: per port, whether rows arrive in timestamp
        order. `respond`: its response to feedback. `standing`: what it always ignores of its first input."""
        buffers = [node.buffer for node in inputs]
        flags = [True] * len(buffers) if ordered is None else list(ordered)
        if operator.merges:
            kind: type[OperatorNode] = MergeNode
        elif len(buffers) > 1:
            kind = ArrivalNode
        else:
            kind = TimedNode if operator.timed else SingleNode
        node = kind(self._free_name(name or type(operator).__name__.lower()), operator, buffers, flags)
        node.strategy, node.page_rows, node.respond = self.strategy, self.page_rows, respond
        node.port.standing = tuple(standing)
        self.operators[node.name] = node
        for port in node.ports:
            port.buffer.ports = (*port.buffer.ports, port)
        self.reshape([node.buffer, *buffers])
        guarding.renew(self, inputs)
        for message in standing:
            self.send(node.port, message)
        return node

    def sink(self, node: Producer, callback: Callable[[Element], None], name: str | None = None) -> Sink:
        """Hand every element that the node emits from now on to the callback, as soon as it is emitted."""
        sink = Sink(self._free_name(name or f"sink_{node.name}"), node.buffer, callback)
        node.buffer.sinks = (*node.buffer.sinks, sink)
        self.sinks[sink.name] = sink
        self.reshape([node.buffer])
        guarding.renew(self, (node,))
        return sink

    def remove(self, node: Producer | Sink) -> None:
        """Remove a node and every operator before it that is then unread. Sources stay."""
        if isinstance(node, Sink):
            self.sinks.pop(node.name)
            node.buffer.sinks = tuple(sink for sink in node.buffer.sinks if sink is not node)
            node.buffer.remembered.pop(node.name, None)
            self.reshape([node.buffer])
            self._remove_unread(node.buffer.producer)
            return
        if node.buffer.ports or node.buffer.sinks:
            readers = [port.node.name for port in node.buffer.ports] + [sink.name for sink in node.buffer.sinks]
            raise OptionError("M6032", f"'{node.name}' is still read", hint=f"remove '{readers[0]}' first")
        if isinstance(node, Source):
            self.sources.pop(node.name)
            self._arcs = None
        else:
            self._remove_operator(node)

    def _remove_unread(self, node: Producer) -> None:
        """Remove an operator that nothing reads; one that was read twice from the same node is removed already."""
        if not isinstance(node, OperatorNode) or self.operators.get(node.name) is not node:
            return
        if not node.buffer.ports and not node.buffer.sinks:
            self._remove_operator(node)

    def _remove_operator(self, node: OperatorNode) -> None:
        self.operators.pop(node.name)
        self.ledger.ready.pop(node, None)
        self.waiting.pop(node, None)
        buffers = list(dict.fromkeys(port.buffer for port in node.ports))
        for port in node.ports:
            port.detach()
        self.reshape(buffers)
        for buffer in buffers:
            self._remove_unread(buffer.producer)

    def _free_name(self, name: str) -> str:
        taken, number, free = (self.sources, self.operators, self.sinks), 1, name
        while any(free in names for names in taken):
            number += 1
            free = f"{name}_{number}"
        return free

    def reshape(self, buffers: Iterable[Buffer]) -> None:
        """Update forks and table rows around these buffers after a change of topology. A buffer with several readers
        has a fork."""
        self.version += 1
        self._arcs = None
        for buffer in buffers:
            if len(buffer.ports) < 2:
                buffer.fork = None
            elif buffer.fork is None:
                names = {b.fork.name for b in self.buffers() if b.fork is not None}
                buffer.fork = Fork(buffer)
                buffer.fork.name = "fork" if "fork" not in names else f"fork {buffer.producer.name}"
            self._remap_around(buffer)
        self._note_cuts()

    def components(self) -> dict[OperatorNode, int]:
        """Return the number of the component that each operator belongs to, derived anew after a change of topology.
        Operators that a buffer connects are in one component."""
        if self._components is None or self._components[0] != self.version:
            self._components = self.version, components(self.operators.values())
        return self._components[1]

    def buffers(self) -> list[Buffer]:
        return [*(source.buffer for source in self.sources.values()), *(n.buffer for n in self.operators.values())]

    # --- the transition table -------------------------------------------------------------------------------------

    def set_strategy(self, strategy: Strategy | str, nodes: Iterable[OperatorNode | str] | None = None) -> None:
        """Re-map the rows of these operators, or of all operators, present and future."""
        chosen = Strategy.parse(strategy) if isinstance(strategy, str) else strategy
        if nodes is None:
            self.strategy = chosen
        for node in [*self.operators.values()] if nodes is None else map(self.node, nodes):
            node.strategy = chosen
            self._remap(node)
        for buffer in self.buffers():
            self._remap_fork(buffer)
        self._note_cuts()

    def set_break(self, node: OperatorNode | str, *, broken: bool = True) -> None:
        """End a fragment at this operator's output and start another one there."""
        buffer = self.node(node).buffer
        buffer.broken = broken
        self._remap_around(buffer)
        self._note_cuts()

    def _note_cuts(self) -> None:
        """Note whether a walk may end before it reaches the sources that it wants to ask."""
        forks = (buffer.fork for buffer in self.buffers())
        self.has_cuts = any(fork is not None and fork.exits for fork in forks) or any(
            node.buffer.broken or node.strategy.rules.paths for node in self.operators.values()
        )

    def _remap_around(self, buffer: Buffer) -> None:
        producer = buffer.producer
        if isinstance(producer, OperatorNode):
            producer.reader_unordered = not all(port.ordered for port in buffer.ports)
            self._remap(producer)
        for port in buffer.ports:
            self._remap(port.node)
        self._remap_fork(buffer)

    @staticmethod
    def _remap(node: OperatorNode) -> None:
        node.row = operator_row(node)
        node.rule = node.strategy.macro(last=node.row.succ == NONE)

    def _remap_fork(self, buffer: Buffer) -> None:
        if buffer.fork is not None:
            producer = buffer.producer
            strategy = producer.strategy if isinstance(producer, OperatorNode) else self.strategy
            buffer.fork.exits = strategy.rules.paths
            buffer.fork.rows = () if buffer.broken else fork_rows(buffer.fork, strategy.rules.prefix)

    def table(self) -> list[Row]:
        """Return the current transition table."""
        rows: list[Row] = []
        for buffer in self.buffers():
            if isinstance(buffer.producer, OperatorNode):
                rows.append(buffer.producer.row)
            if buffer.fork is not None:
                rows += buffer.fork.rows
        return rows

    def node(self, node: OperatorNode | str) -> OperatorNode:
        if isinstance(node, OperatorNode):
            return node
        if node not in self.operators:
            raise OptionError("M6033", f"unknown operator '{node}'", hint=did_you_mean(node, self.operators))
        return self.operators[node]

    # --- time -----------------------------------------------------------------------------------------------------

    def set_ets(self, mode: EtsMode | str) -> None:
        """Choose how waiting operators learn the time."""
        self.ets_mode = EtsMode.parse(mode) if isinstance(mode, str) else mode
        self.on_demand, self.in_band = self.ets_mode.on_demand, self.ets_mode.in_band

    def arcs(self) -> list[Arc]:
        """Return the arcs of the enhanced query graph, derived anew after a change of topology."""
        if self._arcs is None:
            self._arcs = build_arcs(self.sources.values(), self.operators.values())
        return self._arcs

    def heartbeat(self, sources: Iterable[Source] | None = None) -> None:
        """Send the timestamps that these sources, or all, can promise in band."""
        for source in self.sources.values() if sources is None else sources:
            if (value := source.ask(REQUEST)) is not None:
                self.send_time(source, value)

    def promise(self, source: Source, value: int) -> None:
        """Distribute the time that a source promises, in the current mode."""
        if self.ets_mode is EtsMode.EQG:
            self.arcs()
            self.write_time(source, value)
        else:
            self.send_time(source, value)

    def spread_time(self) -> None:
        """Run, and hand the time that has reached an operator on to the operators behind it, whether or not they
        wait."""
        while True:
            self.run()
            if self.ets_mode is not EtsMode.EQG:
                return
            self.arcs()
            written = [arc for node in self.operators.values() if not node.more() for arc in hand_over(node)[1]]
            if not written:
                return

    def send_time(self, source: Source, value: int) -> bool:
        """Append a source's timestamp to its buffer if it exceeds its earlier promises; return whether it does."""
        if value <= source.promised:
            return False
        self._note_ets(source, value)
        source.put(Punctuations.of((), progress=value))
        self.writes += 1
        return True

    def write_time(self, source: Source, value: int) -> list[Arc]:
        """Write a source's timestamp into the registers at the ends of its arcs; return the arcs that took it."""
        written = [arc for arc in source.arcs if arc.write(value)]
        if written:
            self._note_ets(source, value)
            self.writes += len(written)
        return written

    def _note_ets(self, source: Source, value: int) -> None:
        source.counters.ets += 1
        if self.trace is not None:
            self.trace(("ets", source.name, value))

    # --- running --------------------------------------------------------------------------------------------------

    def push(self, source: Source | str, element: Element) -> None:
        """Append an element to a source's buffer; an empty element is dropped."""
        to = self.sources[source] if isinstance(source, str) else source
        if element:
            to.put(element)

    def prod(self, copies: Sequence[tuple[Source, Prod]], among: Container[OperatorNode] | None = None) -> None:
        """Push the copies of a prod to sources, and run. `among`: the operators that it concerns; None: all."""
        prodding.push(self, copies, among)

    def readers(self) -> set[Port | Sink]:
        """All readers of all buffers."""
        return {reader for buffer in self.buffers() for reader in buffer.readers()}

    def reach(
        self, node: Producer, time: int, known: Collection[Port | Sink], closed: Punctuations = NO_PUNCTUATIONS
    ) -> None:
        """Tell the readers of a node, except the `known` ones, the time that its output has reached, and what
        punctuation has `closed`; FOREVER: that it has ended."""
        new = [reader for reader in node.buffer.readers() if reader not in known]
        if new and (time > NEVER or len(closed)):
            node.buffer.append_for(ENDED if time == FOREVER else closed.with_progress(time), new)

    def send(self, branch: Port | Sink, message: Upstream) -> None:
        """Send a message to the operator before a port or a sink. Calls that operators defer are made by the next
        `run`."""
        upstream.send(self, branch, message)

    def repeat_own(self, port: Port) -> None:
        """Send once more what the operator of a port has issued itself."""
        for message in (*port.standing, *port.issued):
            upstream.tell(self, port, message)

    def run(self, max_steps: int | None = None) -> int:
        """Process until nothing changes or `max_steps` steps have been taken; return the number of steps."""
        start = self.steps
        self.step_limit = UNLIMITED if max_steps is None else start + max_steps
        scheduler.run(self)
        return self.steps - start

    def work(self) -> None:
        """Let the operators do the work that they limit per batch, and run."""
        operators = [node.budgeted for node in self.operators.values() if node.budgeted is not None]
        left = [operator.work(allowed=True) for operator in operators]
        if any(left):
            self.run()
        for operator in operators:
            operator.work(allowed=False)

    def pending(self) -> int:
        """Number of tuples that wait for such work."""
        return sum(node.budgeted.pending() for node in self.operators.values() if node.budgeted is not None)

    def statistics(self) -> dict[str, NodeStatistics]:
        """Return a reading of every node, by name."""
        return readings.of_graph(self)

    def snapshot(self) -> dict[str, Any]:
        """Return all buffered data and all state but the operators' tables, as values."""
        return snapshot.take(self)

    def restore(self, value: dict[str, Any]) -> None:
        """Restore a snapshot of a graph with the same nodes."""
        snapshot.restore(self, value)
