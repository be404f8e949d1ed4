"""One activation: alternate execution and continuation steps, from an entry operator until control returns to the
scheduler.

When the walk has backtracked to a source and an operator on the way is idle-waiting, it asks the source for an enabling
timestamp, at most once between two consumptions. A fork passes control to each branch at most once per progress epoch
(an epoch ends when anything is consumed); otherwise two idle branches would pass control back and forth for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.runtime.engine.execution import Done, execute
from millstream.runtime.engine.nodes import Fork, OperatorNode, Source
from millstream.runtime.engine.taking import UNLIMITED
from millstream.runtime.engine.timestamps import REQUEST, Arc, EtsMode, hand_over
from millstream.strategies import Action

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph

Stop = OperatorNode | Fork
"""A node that can have control."""


class Walk:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.path: list[Stop] = []
        """The nodes that backtracking has passed since the last consumption."""
        self.asked: set[Source] = set()
        self.count = 0
        """Pages taken by the current operator since it got control (for batches)."""
        self._current: Stop | None = None
        self._version = 0

    def activate(self, entry: OperatorNode, steps: int = UNLIMITED) -> None:
        """Walk from an operator until control returns to the scheduler, or for a number of steps."""
        self.graph.arcs()
        self._version = self.graph.version
        self.graph.epoch += 1
        self._current = entry
        self.resume(steps)

    @property
    def paused(self) -> bool:
        """True if it can be resumed: it has stopped for the number of its steps."""
        return self._current is not None and self._version == self.graph.version

    def resume(self, steps: int) -> None:
        """Continue for a number of steps."""
        graph = self.graph
        pause = graph.steps + steps
        current, self._current = self._current, None
        while current is not None:
            if graph.steps >= pause:
                self._current = current
                return
            if isinstance(current, Fork):
                current = self._pass_fork(current)
                continue
            done = execute(graph, current)
            if done:
                self.count += current.pages
                graph.epoch += 1
                graph.steps += 1
                if done is Done.CONSUMED:
                    graph.consumed += 1
                    self.path.clear()
                    self.asked.clear()
                if graph.version != self._version or graph.steps >= graph.step_limit:
                    break
            current = self._continue(current, done)
        if graph.trace is not None:
            graph.trace(("exit",))

    def _continue(self, node: OperatorNode, done: Done) -> Stop | None:
        """Take the continuation step: ask the node's macro for the next node."""
        buffer, graph = node.buffer, self.graph
        fork = buffer.fork
        if buffer.broken or not buffer.ports:
            has_tuples = False
        elif fork is None:
            has_tuples = buffer.ports[0].at != buffer.tail
        else:
            has_tuples = any(port.at != buffer.tail and port.tried != graph.epoch for port in buffer.ports)
        more = done is not Done.NOTHING and node.more()
        freed: OperatorNode | None = None
        if not more and not has_tuples and node.arcs and graph.ets_mode is EtsMode.EQG:
            freed = self._hand_over(node)
        action = node.rule(has_tuples or freed is not None, more, self.count, node.strategy.k)
        if action is Action.ENCORE:
            return node
        self.count = 0
        if action is Action.FORWARD:
            if not has_tuples:
                return freed
            return buffer.ports[0].node if fork is None else fork
        if action is Action.BACKTRACK:
            return self._backtrack(node)
        return node if action is Action.RESTART else None

    def _backtrack(self, node: OperatorNode) -> Stop | None:
        self.path.append(node)
        buffer = node.blocking().buffer
        if buffer.broken:
            # The fragment before a break may still hold input, so the walk may not ask its sources.
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
            return branch.node
        if fork.exits:
            return None
        self.path.append(fork)
        return self._upstream(fork, fork.buffer.producer)

    def _upstream(self, stop: Stop, producer: Source | OperatorNode) -> Stop | None:
        self._trace_backtrack(stop, producer.name)
        return self._ask(producer, stop) if isinstance(producer, Source) else producer

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
        """Return an operator whose register was raised, preferably one that backtracking has passed."""
        targets = [arc.target.node for arc in written]
        return next((node for node in targets if node in self.path), targets[0] if targets else None)

    def _trace_backtrack(self, stop: Stop, to: str) -> None:
        if self.graph.trace is not None:
            self.graph.trace(("backtrack", stop.name, to))
