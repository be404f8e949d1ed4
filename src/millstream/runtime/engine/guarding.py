"""Guards on the readers of a graph: mounted by feedback, applied in every step, removed when punctuation covers them.

The buffer remembers the feedback of each of its readers; the guard of a reader is made of it. So a snapshot of the
buffers has the guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from millstream.algebra.feedback import Feedback, Intent, Withdrawal
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.upstream import Upstream
from millstream.runtime.engine.guard import Guard, covered_by, listed, narrowed, passed_by
from millstream.runtime.engine.nodes import OperatorNode, Producer, Sink
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.preference import Preference
from millstream.runtime.operator.contract import Input

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


def reader_name(reader: Port | Sink) -> str:
    return reader.name if isinstance(reader, Sink) else str(reader)


def mount(reader: Port | Sink, message: Feedback) -> None:
    """Add feedback to the guard of a reader, in place of feedback that it covers."""
    sent = [each for each in _sent(reader) if isinstance(each, Feedback)]
    if not any(each.covers(message) for each in sent):
        _remember(reader, [*(each for each in sent if not message.covers(each)), message])


def unmount(reader: Port | Sink, covers: Callable[[Pattern], bool]) -> list[Pattern]:
    """Remove the covered patterns from the guard of a reader, and return them."""
    sent = _sent(reader)
    gone = [each for each in sent if isinstance(each, Feedback) and covers(each.pattern)] if sent else []
    if gone:
        _remember(reader, [each for each in sent if each not in gone])
    return list(dict.fromkeys(each.pattern for each in gone))


def _sent(reader: Port | Sink) -> Sequence[Upstream]:
    return reader.buffer.remembered.get(reader_name(reader), ())


def sent_by(reader: Port | Sink) -> list[Upstream]:
    """Return the messages that a reader has sent and that are remembered, and those that always hold."""
    return [*_sent(reader), *(reader.standing if isinstance(reader, Port) else ())]


def _remember(reader: Port | Sink, messages: list[Upstream]) -> None:
    name = reader_name(reader)
    if messages:
        reader.buffer.remembered[name] = messages
    else:
        reader.buffer.remembered.pop(name, None)
    mount_remembered(reader)


def mount_remembered(reader: Port | Sink) -> None:
    """Make the guard of a reader of the feedback that its buffer remembers."""
    guard = Guard(_sent(reader))
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


def guarded(node: OperatorNode, inputs: Sequence[Input]) -> Sequence[Input]:
    """Return the input of a step without the tuples that the guards drop; remove patterns that its punctuation
    covers."""
    made: list[Input] = []
    for port, given in zip(node.ports, inputs, strict=True):
        if port.guard is not None and given.rows is not None:
            rows = port.guard.filter(given.rows)
            node.counters.disclaimed += given.rows.height - (0 if rows is None else rows.height)
            made.append(replace(given, rows=rows))
        else:
            made.append(given)
        if given.punctuations is not None and len(given.punctuations):
            unmount(port, covered_by(given.punctuations))
            _narrow(port, given.punctuations)
    return made


def _narrow(reader: Port, punctuations: Punctuations) -> None:
    """Remove the values of lists in patterns that punctuations cover one by one."""
    sent = _sent(reader)
    if any(isinstance(each, Feedback) and listed(each.pattern) for each in sent):
        narrow = [replace(m, pattern=narrowed(m.pattern, punctuations)) if isinstance(m, Feedback) else m for m in sent]
        if narrow != sent:
            _remember(reader, [m for m in narrow if not (isinstance(m, Feedback) and m.pattern.is_empty)])


def retire(graph: Graph) -> None:
    """Remove the patterns that time, or the punctuation that a sink has received, covers. Where the guard of a sink
    does not need a pattern any more, the guards before it do not either."""
    for reader in graph.readers():
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
    """Remove the guards before nodes that have a new reader, which has disclaimed nothing; then repeat the feedback of
    all sinks, so that guards that still apply are mounted again."""
    disarmed = [_disarm(producer) for producer in producers]
    if not any(disarmed):
        return
    for reader in graph.readers():
        messages = sent_by(reader) if isinstance(reader, Sink) else reader.standing
        for message in [*messages]:
            graph.send(reader, message)


def _disarm(node: Producer) -> bool:
    """Remove all guards before a node; return whether there were any."""
    if not isinstance(node, OperatorNode):
        return False
    watched = node.operator.unwatch(lambda _: True)
    if not node.guarded:
        return watched
    for port in node.ports:
        if unmount(port, lambda _: True):
            _disarm(port.buffer.producer)
    return True


def _schema(producer: Producer) -> Schema:
    return producer.operator.schema if isinstance(producer, OperatorNode) else producer.schema
