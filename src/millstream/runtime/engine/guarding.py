"""Guards on the readers of a graph: mounted by feedback, applied in every step, removed when punctuation covers them.

The buffer remembers the feedback of each of its readers; the guard of a reader is made of it. So a snapshot of the
buffers has the guards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, TypeGuard

from millstream.algebra.feedback import Feedback, Intent, Withdrawal, added
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.upstream import Upstream
from millstream.runtime.engine.gate import STATEFUL, GuardReading
from millstream.runtime.engine.guard import SHOWN, Covered, Ends, Guard, Seen
from millstream.runtime.engine.nodes import OperatorNode, Producer, Sink
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.preference import Preference
from millstream.runtime.operator.capabilities import Disclaims, unwatch
from millstream.runtime.operator.contract import Input, Operator
from millstream.runtime.operator.propagation import together

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


def reader_name(reader: Port | Sink) -> str:
    return reader.name if isinstance(reader, Sink) else str(reader)


def mount(reader: Port | Sink, message: Feedback) -> None:
    """Add feedback to the guard of a reader, in place of feedback that it covers."""
    sent = [each for each in _sent(reader) if isinstance(each, Feedback)]
    if not any(each.covers(message) for each in sent):
        _remember(reader, added(sent, message))


def issue(port: Port, message: Upstream) -> None:
    """Note that an operator has sent feedback by itself: it stands whatever readers the operator has."""
    if isinstance(message, Feedback) and not any(each.covers(message) for each in port.issued):
        port.issued = tuple(added(port.issued, message))


def lapse(reader: Port | Sink, covered: Covered) -> tuple[list[Pattern], list[Pattern]]:
    """Remove the covered parts of the feedback of a reader. Return them, and those that its operator has issued."""
    gone: list[Pattern] = []
    own: list[Pattern] = []
    if sent := _sent(reader):
        ends = _ends(reader, "sent", sent)
        if numbers := covered(ends):
            left, gone = ends.without(numbers)
            _remember(reader, left)
    if isinstance(reader, Port) and reader.issued:
        ends = _ends(reader, "issued", reader.issued)
        if numbers := covered(ends):
            left, own = ends.without(numbers)
            reader.issued = tuple(left)
    return gone, own


def _ends(reader: Port | Sink, kind: str, messages: Sequence[Upstream]) -> Ends:
    ends = reader.ends.get(kind)
    if ends is None or ends.messages is not messages:
        ends = reader.ends[kind] = Ends(messages, _schema(reader.buffer.producer))
    return ends


def covered_by(punctuations: Punctuations) -> Covered:
    """Return the parts of feedback that punctuations cover."""
    shapes = together(punctuations)

    @cache
    def known() -> PunctuationSet:
        made = PunctuationSet()
        made.admit(punctuations)
        return made

    return lambda ends: ends.covered(shapes, known)


def _sent(reader: Port | Sink) -> Sequence[Upstream]:
    return reader.buffer.remembered.get(reader_name(reader), ())


def sent_by(reader: Port | Sink) -> list[Upstream]:
    """Return the messages that a reader has sent and that are remembered, and those that always hold."""
    return [*_sent(reader), *(reader.standing if isinstance(reader, Port) else ())]


def passed_on(reader: Port | Sink) -> list[Upstream]:
    """Return the messages that a reader has sent to the producer: none if it passes no feedback on."""
    return [] if isinstance(reader, Port) and not reader.node.switch.propagate else sent_by(reader)


def _remember(reader: Port | Sink, messages: Sequence[Upstream]) -> None:
    name = reader_name(reader)
    if messages:
        reader.buffer.remembered[name] = [*messages]
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
    """Return the first patterns of guards as text."""
    found = [str(each) for reader in readers if reader.guard is not None for each in reader.guard.patterns[:SHOWN]]
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
    return type(node.operator).tables is not Operator.tables or isinstance(node.operator, Disclaims)


def guarded(graph: Graph, node: OperatorNode, inputs: Sequence[Input]) -> Sequence[Input]:
    """Return the input of a step without the tuples that the guards drop; remove patterns that its punctuation
    covers, and withdraw those that the operator has sent itself: the operators before it may have passed the
    punctuation on before they heard of them."""
    made: list[Input] = []
    for port, given in zip(node.ports, inputs, strict=True):
        if port.guard is not None and given.rows is not None and not node.guards_itself:
            rows = port.guard.filter(given.rows, partial(_cost_behind, node) if _may_sleep(port) else None)
            node.counters.disclaimed += given.rows.height - (0 if rows is None else rows.height)
            made.append(replace(given, rows=rows))
        else:
            made.append(given)
        if given.punctuations is not None and len(given.punctuations) and _sent(port):
            for pattern in lapse(port, covered_by(given.punctuations))[1]:
                graph.send(port, Withdrawal(pattern))
    return made


def retire(graph: Graph) -> None:
    """Remove the patterns that time, or the punctuation that a sink has received, covers. Where the guard of a sink
    does not need a pattern any more, the guards before it do not either."""
    for reader in [reader for buffer in graph.buffers() if buffer.remembered for reader in buffer.readers()]:
        if isinstance(reader, Port):
            lapse(reader, _passed(reader.bound()))
            continue
        producer = reader.buffer.producer
        bound = producer.bound() if isinstance(producer, OperatorNode) else producer.promised
        gone, _ = lapse(reader, _passed(bound))
        for pattern in [*gone, *lapse(reader, partial(_seen, reader.seen))[0]]:
            graph.send(reader, Withdrawal(pattern))


def _passed(bound: int) -> Covered:
    return lambda ends: ends.passed(bound)


def _seen(seen: Seen, ends: Ends) -> Sequence[int]:
    """Return the parts of feedback that the punctuation which a sink has received covers, if there is news."""
    if ends.checked == seen.count:
        return ()
    ends.checked = seen.count
    return ends.covered(seen.known().shapes, seen.known)


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
    watched = unwatch(node.operator, lambda _: True)
    if not node.guarded:
        return watched
    for port in node.ports:
        issued += [(port, message) for message in port.issued]
        if _sent(port):
            _remember(port, [])
            port.issued = ()
            _disarm(port.buffer.producer, issued)
    return True


def _schema(producer: Producer) -> Schema:
    return producer.operator.schema if isinstance(producer, OperatorNode) else producer.schema
