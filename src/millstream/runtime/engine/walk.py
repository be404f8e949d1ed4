"""One activation: the two-step cycle from an entry operator until control goes back to the scheduler.

Execution step, then continuation step, again and again. Whenever the walk has backtracked to a source and an operator
it passed is idle-waiting, the source is asked for an enabling timestamp, at most once between two consumptions. A fork
passes control to each branch at most once per progress epoch (an epoch ends when anything is consumed), or two idle
branches would send it back and forth for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.runtime.engine.execution import Done, execute
from millstream.runtime.engine.nodes import Fork, OperatorNode, Source
from millstream.runtime.engine.timestamps import REQUEST, Arc, EtsMode, hand_over
from millstream.strategies import Action

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph

Stop = OperatorNode | Fork
"""Where control can be."""


class Walk:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.path: list[Stop] = []
        """What backtracking has passed since the last consumption."""
        self.asked: set[Source] = set()

    def activate(self, entry: OperatorNode) -> None:
        graph = self.graph
        graph.arcs()
        version = graph.version
        graph.epoch += 1
        current: Stop | None = entry
        entry.count = 0
        while current is not None:
            if isinstance(current, Fork):
                current = self._pass_fork(current)
                continue
            done = execute(graph, current)
            if done:
                current.count += current.pages
                graph.epoch += 1
                graph.steps += 1
                if done is Done.CONSUMED:
                    graph.consumed += 1
                    self.path.clear()
                    self.asked.clear()
                if graph.version != version or graph.steps >= graph.step_limit:
                    break
            current = self._continue(current, done)
        if graph.trace is not None:
            graph.trace(("exit",))

    def _continue(self, node: OperatorNode, done: Done) -> Stop | None:
        """The continuation step: ask the node's macro where to go."""
        buffer, graph = node.buffer, self.graph
        fork = buffer.fork
        if buffer.broken or not buffer.ports:
            has_tuples = False
        elif fork is None:
            has_tuples = buffer.ports[0].at != buffer.tail
        else:
            has_tuples = any(port.at != buffer.tail and port.tried != graph.epoch for port in buffer.ports)
        more = done is not Done.NOTHING and node.more()
        told: OperatorNode | None = None
        if not more and not has_tuples and node.arcs and graph.ets_mode is EtsMode.EQG:
            told = self._hand_over(node)
        action = node.rule(has_tuples or told is not None, more, node.count, node.strategy.k)
        if action is Action.ENCORE:
            return node
        node.count = 0
        if action is Action.FORWARD:
            if not has_tuples:
                return self._enter(told)
            return self._enter(buffer.ports[0].node) if fork is None else fork
        if action is Action.BACKTRACK:
            return self._backtrack(node)
        return node if action is Action.RESTART else None

    @staticmethod
    def _enter(node: OperatorNode | None) -> OperatorNode | None:
        if node is not None:
            node.count = 0
        return node

    def _backtrack(self, node: OperatorNode) -> Stop | None:
        self.path.append(node)
        port = node.blocking()
        buffer = port.buffer
        if buffer.broken:
            # Nothing before a break is known to be drained, so no source may be asked from here.
            return None
        if buffer.fork is not None:
            self._trace_backtrack(node, buffer.fork.name)
            return buffer.fork
        return self._upstream(node, buffer.producer)

    def _pass_fork(self, fork: Fork) -> Stop | None:
        graph = self.graph
        if graph.trace is not None:
            graph.trace(("fork", fork.name))
        branch = fork.next_branch(graph.epoch)
        if branch is not None:
            return self._enter(branch.node)
        if fork.exits:
            return None
        self.path.append(fork)
        return self._upstream(fork, fork.buffer.producer)

    def _upstream(self, stop: Stop, producer: Source | OperatorNode) -> Stop | None:
        self._trace_backtrack(stop, producer.name)
        if isinstance(producer, Source):
            return self._ask(producer, stop)
        return self._enter(producer)

    def _ask(self, source: Source, reader: Stop) -> Stop | None:
        """Ask a source for an enabling timestamp on behalf of the idle operators on the path."""
        graph = self.graph
        if not graph.on_demand or source in self.asked or not any(stop.idle() for stop in self.path):
            return None
        self.asked.add(source)
        value = source.ask(REQUEST)
        if value is None:
            return None
        if graph.ets_mode is EtsMode.PUNCTUATION:
            return reader if graph.send_time(source, value) else None
        return self._toward_path(graph.write_time(source, value))

    def _hand_over(self, node: OperatorNode) -> OperatorNode | None:
        value, written = hand_over(node)
        self.graph.writes += len(written)
        if self.graph.trace is not None:
            for arc in written:
                self.graph.trace(("handover", node.name, str(arc.target), value))
        return self._toward_path(written)

    def _toward_path(self, written: list[Arc]) -> OperatorNode | None:
        """Of the operators that were told the time, prefer the one that backtracking came from."""
        targets = [arc.target.node for arc in written]
        chosen = next((node for node in targets if node in self.path), targets[0] if targets else None)
        return self._enter(chosen)

    def _trace_backtrack(self, stop: Stop, to: str) -> None:
        if self.graph.trace is not None:
            self.graph.trace(("backtrack", stop.name, to))
