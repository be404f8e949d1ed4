"""The router: carries messages against the data, from operator to operator and to the sources of a graph.

A message starts at a branch (a port of an operator, or a sink, where the host hands it in) and goes to the producer
there. An operator answers it and passes messages on to its own inputs. No data moves meanwhile. An operator receives
equal messages once, however many paths lead to it. The scheduler runs what operators defer (`Answer.then`) when nothing
else moves, for each operator after the operators that it reads.

The time request of an idle-waiting operator is carried by its walk instead: only the walk knows the order in which to
ask the sources.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from polars.exceptions import PanicException

from millstream.algebra.feedback import Feedback, Intent, Withdrawal
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.upstream import Upstream
from millstream.errors import OperatorError, reason_of
from millstream.runtime.engine import responding
from millstream.runtime.engine.guarding import covered_by, lapse, mount, passed_on, reader_name
from millstream.runtime.engine.nodes import OperatorNode, Sink, Source
from millstream.runtime.engine.port import Port

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph

Result = TypeVar("Result")


def send(graph: Graph, branch: Port | Sink, message: Upstream) -> None:
    """Carry a message from a reader of a buffer to the producer and further upstream."""
    todo: deque[tuple[Port | Sink, Upstream]] = deque([(branch, message)])
    received: set[tuple[OperatorNode | Source, Upstream]] = set()
    deferred: list[tuple[OperatorNode, Callable[[], None]]] = []
    while todo:
        branch, message = todo.popleft()
        node, passed = branch.buffer.producer, at_fork(branch, message)
        if passed is None or (node, passed) in received:
            continue
        received.add((node, passed))
        if isinstance(node, Source):
            deliver(graph, node, passed)
            continue
        answer = _naming(node, partial(node.answer, passed))
        todo += _forwarded(node, answer.passed)
        for pattern in answer.abandoned:
            todo += _forwarded(node, responding.passed(node, Feedback(Intent.ASSUMED, pattern)))
        if answer.then is not None:
            deferred.append((node, partial(_naming, node, answer.then)))
        if node.idle():
            graph.waiting[node] = None
    if deferred:
        place = {node: number for number, node in enumerate(graph.operators.values())}
        graph.deferred += [act for _, act in sorted(deferred, key=lambda pair: -place[pair[0]])]


def _naming(node: OperatorNode, call: Callable[[], Result]) -> Result:
    """Call an operator; an error that it raises names it."""
    try:
        return call()
    except (Exception, PanicException) as error:
        raise OperatorError(node.name, reason_of(error)) from error


def at_fork(branch: Port | Sink, message: Upstream) -> Upstream | None:
    """Return the message to pass on from a branch. If it is one of several, the kind of message decides."""
    if isinstance(message, Feedback):
        if message.intent is not Intent.DEMANDED and not _stands(branch, message):
            mount(branch, message)
    elif isinstance(message, Withdrawal):
        lapse(branch, covered_by(Punctuations.of([message.pattern])))
    elif message.remembered:
        branch.buffer.remembered.setdefault(reader_name(branch), []).append(message)
    others = [other for other in branch.buffer.readers() if other is not branch]
    return message.at_fork([passed_on(other) for other in others]) if others else message


def _stands(branch: Port | Sink, message: Feedback) -> bool:
    return isinstance(branch, Port) and message in branch.standing


def tell(graph: Graph, port: Port, message: Upstream) -> None:
    """Send a message that an operator issues itself. One that passes no feedback on drops the tuples itself."""
    if port.node.switch.propagate or not isinstance(message, Feedback):
        send(graph, port, message)
    elif message.intent is Intent.ASSUMED and not _stands(port, message):
        mount(port, message)


def abandon(graph: Graph, node: OperatorNode, pattern: Pattern) -> None:
    """Pass on what the inputs of an operator may omit, since it emits no later result that matches the pattern."""
    for branch, message in _forwarded(node, responding.passed(node, Feedback(Intent.ASSUMED, pattern))):
        send(graph, branch, message)


def _forwarded(node: OperatorNode, passed: responding.Passed) -> list[tuple[Port | Sink, Upstream]]:
    """Return the messages to send to the inputs of an operator. One that passes no feedback on drops the tuples
    itself."""
    found: list[tuple[Port | Sink, Upstream]] = []
    for port, message in passed:
        if node.switch.propagate or not isinstance(message, Feedback):
            found.append((node.ports[port], message))
        elif message.intent is Intent.ASSUMED:
            mount(node.ports[port], message)
    return found


def deliver(graph: Graph, source: Source, message: Upstream) -> None:
    """Hand a message to a source and distribute the time that it promises in reply."""
    value = source.ask(message)
    if value is not None:
        graph.promise(source, value)
