"""Guards on the readers of a graph: mounted by feedback, applied in every step, removed when punctuation covers them.

The buffer remembers the feedback of each of its readers; the guard of a reader is made of it. So a snapshot of the
buffers has the guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from millstream.algebra.feedback import Feedback, Intent, Withdrawal, added
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import one_of
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.upstream import Upstream
from millstream.runtime.engine.gate import STATEFUL, GuardReading
from millstream.runtime.engine.guard import Guard, covered_by, listed, narrowed, passed_by
from millstream.runtime.engine.nodes import OperatorNode, Producer, Sink
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.preference import Preference
from millstream.runtime.operator.contract import Input, Operator

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


def reader_name(reader: Port | Sink) -> str:
    return reader.name if isinstance(reader, Sink) else str(reader)


def mount(reader: Port | Sink, message: Feedback) -> None:
    """Add feedback to the guard of a reader, in place of feedback that it covers."""
    sent = [each for each in _sent(reader) if isinstance(each, Feedback)]
    if not any(each.covers(message) for each in sent):
        _remember(reader, [*added(sent, message)])


def issue(port: Port, message: Upstream) -> None:
    """Note that an operator has sent feedback by itself: it stands whatever readers the operator has."""
    if isinstance(message, Feedback) and not any(each.covers(message) for each in port.issued):
        port.issued = tuple(added(port.issued, message))


def unmount(reader: Port | Sink, covers: Callable[[Pattern], bool]) -> list[Pattern]:
    """Remove the covered patterns from the guard of a reader, and return them."""
    sent = _sent(reader)
    gone = [each for each in sent if isinstance(each, Feedback) and covers(each.pattern)] if sent else []
    if gone:
        _remember(reader, [each for each in sent if each not in gone])
        if isinstance(reader, Port):
            reader.issued = tuple(each for each in reader.issued if each not in gone)
    return list(dict.fromkeys(each.pattern for each in gone))


def _sent(reader: Port | Sink) -> Sequence[Upstream]:
    return reader.buffer.remembered.get(reader_name(reader), ())


def sent_by(reader: Port | Sink) -> list[Upstream]:
    """Return the messages that a reader has sent and that are remembered, and those that always hold."""
    return [*_sent(reader), *(reader.standing if isinstance(reader, Port) else ())]


def passed_on(reader: Port | Sink) -> list[Upstream]:
    """Return the messages that a reader has sent to the producer: none if it passes no feedback on."""
    return [] if isinstance(reader, Port) and not reader.node.switch.propagate else sent_by(reader)


def _remember(reader: Port | Sink, messages: list[Upstream]) -> None:
    name = reader_name(reader)
    if messages:
        reader.buffer.remembered[name] = messages
    else:
        reader.buffer.remembered.pop(name, None)
    mount_remembered(reader)


def mount_remembered(reader: Port | Sink) -> None:
    """Make the guard of a reader of the feedback that its buffer remembers."""
    guard, before = Guard(_sent(reader)), reader.guard
    if before is not None:
        guard.gate = before.gate
        guard.gate.wake()
    reader.guard = guard if guard else None
    if isinstance(reader, Port):
        reader.node.guarded = any(_sent(port) for port in reader.node.ports)
    else:
        first, schema = [each.pattern for each in _sent(reader) if _desires(each)], _schema(reader.buffer.producer)
        ordered = schema.ordered and schema.kind is not TimeKind.LATENT
        reader.preference = Preference(first, ordered=ordered) if first else None


def _desires(message: Upstream) -> TypeGuard[Feedback]:
    return isinstance(message, Feedback) and message.intent is Intent.DESIRED


def written(*readers: Port | Sink) -> tuple[str, ...]:
    """Return the patterns of guards as text."""
    found = [str(pattern) for reader in readers if reader.guard is not None for pattern in reader.guard.patterns]
    return tuple(dict.fromkeys(found))


def readings(*readers: Port | Sink) -> tuple[GuardReading, ...]:
    """Return what the guards of readers have done."""
    return tuple(reader.guard.reading() for reader in readers if reader.guard is not None)


def _may_sleep(port: Port) -> bool:
    """Return whether the guard of a port may sleep: not if the operator holds state that it has purged, or has
    disclaimed the tuples by itself."""
    return not port.issued and not _stateful(port.node)


def _cost_behind(node: OperatorNode) -> int:
    """Return what a tuple costs an operator and those behind it."""
    cost, todo, seen = 0, [node], {node}
    while todo:
        node = todo.pop()
        cost += STATEFUL if _stateful(node) else 1
        behind = {reader.node for reader in node.buffer.ports} - seen
        seen |= behind
        todo += behind
    return cost


def _stateful(node: OperatorNode) -> bool:
    kind = type(node.operator)
    return kind.tables is not Operator.tables or kind.disclaim is not Operator.disclaim


def guarded(graph: Graph, node: OperatorNode, inputs: Sequence[Input]) -> Sequence[Input]:
    """Return the input of a step without the tuples that the guards drop; remove patterns that its punctuation
    covers, and withdraw those that the operator has sent itself: the operators before it may have passed the
    punctuation on before they heard of them."""
    made: list[Input] = []
    for port, given in zip(node.ports, inputs, strict=True):
        if port.guard is not None and given.rows is not None and not node.operator.guards_itself:
            rows = port.guard.filter(given.rows, partial(_cost_behind, node) if _may_sleep(port) else None)
            node.counters.disclaimed += given.rows.height - (0 if rows is None else rows.height)
            made.append(replace(given, rows=rows))
        else:
            made.append(given)
        if given.punctuations is not None and len(given.punctuations):
            covered = covered_by(given.punctuations)
            parts = (_closed(each.pattern, covered, given.punctuations) for each in port.issued)
            closed = [part for part in parts if part is not None]
            unmount(port, covered)
            narrow(port, given.punctuations)
            for pattern in closed:
                graph.send(port, Withdrawal(pattern))
    return made


def _closed(pattern: Pattern, covered: Callable[[Pattern], bool], punctuations: Punctuations) -> Pattern | None:
    """Return the part of a pattern that punctuations cover: all of it, or values of its list; None: nothing."""
    if covered(pattern):
        return pattern
    if not listed(pattern) or (left := narrowed(pattern, punctuations)) == pattern:
        return None
    held = dict(left.items)
    for name, restriction in pattern.items:
        if not left.is_empty and restriction != held[name]:
            return Pattern.of(dict(pattern.items) | {name: one_of({*restriction.values} - {*held[name].values})})
    return pattern


def narrow(reader: Port | Sink, punctuations: Punctuations) -> None:
    """Remove the values of lists in patterns that punctuations cover one by one."""
    sent = _sent(reader)
    if any(isinstance(each, Feedback) and listed(each.pattern) for each in sent):
        rest = [replace(m, pattern=narrowed(m.pattern, punctuations)) if isinstance(m, Feedback) else m for m in sent]
        if rest != sent:
            _remember(reader, [m for m in rest if not (isinstance(m, Feedback) and m.pattern.is_empty)])
            if isinstance(reader, Port):
                left = [replace(m, pattern=narrowed(m.pattern, punctuations)) for m in reader.issued]
                reader.issued = tuple(m for m in left if not m.pattern.is_empty)


def retire(graph: Graph) -> None:
    """Remove the patterns that time, or the punctuation that a sink has received, covers. Where the guard of a sink
    does not need a pattern any more, the guards before it do not either."""
    for reader in [reader for buffer in graph.buffers() if buffer.remembered for reader in buffer.readers()]:
        if not _sent(reader):
            continue
        producer = reader.buffer.producer
        if isinstance(reader, Port):
            unmount(reader, passed_by(_schema(producer), reader.bound()))
            continue
        bound = producer.bound() if isinstance(producer, OperatorNode) else producer.promised
        gone = [*unmount(reader, passed_by(_schema(producer), bound)), *unmount(reader, reader.seen.covers)]
        for pattern in gone:
            graph.send(reader, Withdrawal(pattern))


def renew(graph: Graph, producers: Iterable[Producer]) -> None:
    """Remove the guards before nodes that have a new reader, which has disclaimed nothing; then repeat all feedback, so
    that guards that still apply are mounted again."""
    issued: list[tuple[Port, Feedback]] = []
    disarmed = [_disarm(producer, issued) for producer in producers]
    if any(disarmed):
        for port, message in issued:
            issue(port, message)
        repeat(graph)


def repeat(graph: Graph) -> None:
    """Send the feedback of all sinks, and what operators have issued by themselves, once more: readers of a buffer that
    others have stopped reading may disclaim more together."""
    for reader in [*graph.readers()]:
        if isinstance(reader, Port):
            graph.repeat_own(reader)
        else:
            for message in sent_by(reader):
                graph.send(reader, message)


def _disarm(node: Producer, issued: list[tuple[Port, Feedback]]) -> bool:
    """Remove all guards before a node, and note what operators had issued; return whether there were any."""
    if not isinstance(node, OperatorNode):
        return False
    watched = node.operator.unwatch(lambda _: True)
    if not node.guarded:
        return watched
    for port in node.ports:
        issued += [(port, message) for message in port.issued]
        if unmount(port, lambda _: True):
            _disarm(port.buffer.producer, issued)
    return True


def _schema(producer: Producer) -> Schema:
    return producer.operator.schema if isinstance(producer, OperatorNode) else producer.schema
