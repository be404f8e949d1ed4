"""The router: carries messages against the data, from operator to operator and to the sources of a graph.

A message goes from the branch where it is raised (a port of an operator, or a sink, where the host hands one in) to the
operator before it, which answers and passes on what it likes, and so on. No data moves meanwhile. An operator hears
equal messages once, however many ways lead to it. What an operator has put off (`Answer.then`) is owed: the scheduler
has it done when nothing else moves, for each operator after those that it reads.

The request for time that an idle-waiting operator makes is carried by its walk, which alone knows the order in which
sources have to be asked; it reaches the source in the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from millstream.algebra.upstream import Upstream
from millstream.runtime.engine.nodes import OperatorNode, Sink, Source
from millstream.runtime.engine.port import Port

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


def send(graph: Graph, branch: Port | Sink, message: Upstream) -> None:
    """Carry a message from a reader of a buffer to the producer, and on from there."""
    todo: deque[tuple[Port | Sink, Upstream]] = deque([(branch, message)])
    heard: set[tuple[OperatorNode | Source, Upstream]] = set()
    owed: list[tuple[OperatorNode, Callable[[], None]]] = []
    while todo:
        branch, message = todo.popleft()
        node, passed = branch.buffer.producer, at_fork(branch, message)
        if passed is None or (node, passed) in heard:
            continue
        heard.add((node, passed))
        if isinstance(node, Source):
            reach(graph, node, passed)
            continue
        answer = node.operator.answer(passed)
        todo += [(node.ports[port], further) for port, further in answer.passed]
        if answer.then is not None:
            owed.append((node, answer.then))
        if node.idle():
            graph.waiting[node] = None
    if owed:
        place = {node: number for number, node in enumerate(graph.operators.values())}
        graph.owed += [act for _, act in sorted(owed, key=lambda pair: -place[pair[0]])]


def at_fork(branch: Port | Sink, message: Upstream) -> Upstream | None:
    """What goes on from a branch; where it is one of several, the kind of message says."""
    buffer = branch.buffer
    name = branch.name if isinstance(branch, Sink) else str(branch)
    if message.remembered:
        buffer.said.setdefault(name, []).append(message)
    others = [other for other in (*map(str, buffer.ports), *(sink.name for sink in buffer.sinks)) if other != name]
    return message.at_fork([buffer.said.get(other, ()) for other in others]) if others else message


def reach(graph: Graph, source: Source, message: Upstream) -> None:
    """Hand a message to a source; the time that it promises in return is told."""
    value = source.ask(message)
    if value is not None:
        graph.promise(source, value)
