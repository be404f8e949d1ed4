"""Snapshots: all data in a graph, as values that restore an equal graph.

A snapshot has the buffers with their enqueue numbers, cursors, registers, reorder buffers, the turn of each fork, the
remembered messages of readers (their guards), the scalars of the operators, and the punctuations that sinks have
seen. Strategies, breaks and the way time is promised are configuration of the host. The host also stores the operators'
tables, by their changes, and restores them first.
The state of some nodes alone restores equal nodes of another graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from millstream.algebra.element import Page
from millstream.algebra.schema import NEVER
from millstream.algebra.values import FORMAT, check_format
from millstream.errors import InputError
from millstream.runtime.engine.buffer import Buffer, Entry
from millstream.runtime.engine.guarding import mount_remembered
from millstream.runtime.engine.nodes import OperatorNode, Sink, Source, TimedNode
from millstream.runtime.engine.port import Port

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph

NodeStates = dict[str, Any]
"""The last enqueue number of a graph, and the states of some of its nodes by name."""


def take(graph: Graph) -> dict[str, Any]:
    """Return a snapshot. The caller stores the content of the tables itself, before the graph runs again."""
    return {
        "format": FORMAT,
        "sequence": graph.ledger.sequence,
        "peak": graph.ledger.peak,
        "sources": {source.name: _take_source(source) for source in graph.sources.values()},
        "operators": {node.name: _take_operator(node) for node in graph.operators.values()},
        "sinks": {sink.name: _take_sink(sink) for sink in graph.sinks.values()},
    }


def restore(graph: Graph, value: dict[str, Any]) -> None:
    """Restore a snapshot."""
    check_format(value.get("format"), "the snapshot of a graph")
    for kind, here in (("sources", graph.sources), ("operators", graph.operators)):
        if value[kind].keys() != here.keys():
            missing = sorted(value[kind].keys() ^ here.keys())
            raise InputError("M5021", f"the snapshot is of another graph: {kind} differ in {', '.join(missing)}")
    graph.ledger.sequence = value["sequence"]
    graph.ledger.held = 0
    for name, source in graph.sources.items():
        _restore_source(source, value["sources"][name])
    for name, node in graph.operators.items():
        _restore_operator(node, value["operators"][name])
    for name, held in value.get("sinks", {}).items():
        _restore_sink(graph.sinks[name], held)
    for node in graph.operators.values():
        graph.ledger.ready[node] = None
        node.prods = sum(port.prods() for port in node.ports)
    graph.ledger.peak = value["peak"]
    graph.version += 1


def take_nodes(graph: Graph, names: Iterable[str]) -> NodeStates:
    """Return the states of these nodes, of which no other node reads the output."""
    chosen = set(names)
    sources = {name: _take_source(node) for name, node in graph.sources.items() if name in chosen}
    operators = {name: _take_operator(node) for name, node in graph.operators.items() if name in chosen}
    return {"sequence": graph.ledger.sequence, "sources": sources, "operators": operators}


def restore_nodes(graph: Graph, value: NodeStates, names: Mapping[str, str]) -> None:
    """Restore the states of new nodes, which have taken no input yet; `names`: their names, by those in the states. The
    elements that wait for them precede those that arrive from now on."""
    graph.ledger.sequence = max(graph.ledger.sequence, value["sequence"])
    for old, held in value["sources"].items():
        _restore_source(graph.sources[names[old]], {**held, "buffer": _renamed(held["buffer"], names)})
    for old, held in value["operators"].items():
        node = graph.operators[names[old]]
        _restore_operator(node, {**held, "buffer": _renamed(held["buffer"], names)})
        graph.ledger.ready[node] = None
    graph.version += 1


def _renamed(buffer: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The state of a buffer with other names of its readers, which are sinks, or ports: a node, a dot and a number."""
    said: dict[str, Any] = {}
    for reader, sent in buffer["said"].items():
        node, dot, port = reader.rpartition(".")
        said[names[reader] if reader in names else f"{names[node]}{dot}{port}"] = sent
    return {**buffer, "said": said}


def _take_source(source: Source) -> dict[str, Any]:
    return {"promised": source.promised, "buffer": _take_buffer(source.buffer)}


def _restore_source(source: Source, value: dict[str, Any]) -> None:
    source.promised = value["promised"]
    _restore_buffer(source.buffer, value["buffer"])


def _passed(buffer: Buffer) -> int:
    """Return how many rows of the oldest element every reader has taken; a snapshot leaves them out."""
    return min((port.offset for port in buffer.ports if port.at == buffer.base), default=0)


def _take_buffer(buffer: Buffer) -> dict[str, Any]:
    entries = [(entry.sequence, entry.element) for entry in buffer.entries.values()]
    if passed := _passed(buffer):
        sequence, page = entries[0]
        assert isinstance(page, Page)
        entries[0] = sequence, Page(page.frame.slice(passed))
    turn = buffer.fork.turn if buffer.fork is not None else 0
    messages = {reader: [*sent] for reader, sent in buffer.remembered.items()}
    return {"base": buffer.base, "entries": entries, "turn": turn, "said": messages}


def _restore_buffer(buffer: Buffer, value: dict[str, Any]) -> None:
    buffer.base, buffer.remembered = value["base"], {reader: [*sent] for reader, sent in value["said"].items()}
    entries = [Entry(element, sequence) for sequence, element in value["entries"]]
    buffer.entries = dict(enumerate(entries, start=buffer.base))
    buffer.tail = buffer.base + len(entries)
    buffer.ledger.hold(sum(entry.weight for entry in entries))
    for reader in buffer.readers():
        mount_remembered(reader)
    if buffer.fork is not None:
        buffer.fork.turn = value["turn"] % len(buffer.ports)


def _take_sink(sink: Sink) -> dict[str, Any]:
    return {"seen": sink.seen.to_value(), "gate": _take_gate(sink)}


def _restore_sink(sink: Sink, value: dict[str, Any]) -> None:
    sink.seen.restore(value["seen"])
    _restore_gate(sink, value.get("gate"))


def _take_gate(reader: Port | Sink) -> tuple[int, ...] | None:
    return None if reader.guard is None else reader.guard.gate.to_value()


def _restore_gate(reader: Port | Sink, value: tuple[int, ...] | None) -> None:
    """The buffer that the reader reads has been restored, and with it the guard."""
    if reader.guard is not None and value is not None:
        reader.guard.gate.restore(value)


def _take_operator(node: OperatorNode) -> dict[str, Any]:
    node.operator.tables()  # an operator moves pending tuples into its tables now
    return {
        "buffer": _take_buffer(node.buffer),
        "ports": [_take_port(port) for port in node.ports],
        "scalars": node.operator.scalars(),
        "sent": node.sent,
        "latest_out": node.latest_out,
        "in_band": node.in_band,
        "told": node.seen_bound if isinstance(node, TimedNode) else None,
        "prods": (dict(node.expected), dict(node.met)),
    }


def _restore_operator(node: OperatorNode, value: dict[str, Any]) -> None:
    _restore_buffer(node.buffer, value["buffer"])
    for port, held in zip(node.ports, value["ports"], strict=True):
        _restore_port(port, held)
    node.operator.restore_scalars(value["scalars"])
    node.sent, node.latest_out, node.in_band = value["sent"], value["latest_out"], value["in_band"]
    if isinstance(node, TimedNode):
        node.seen_bound = value["told"]
    expected, met = value.get("prods", ({}, {}))
    node.expected, node.met = dict(expected), {number: [*copies] for number, copies in met.items()}


def _take_port(port: Port) -> dict[str, Any]:
    held = port.reorder
    return {
        "at": port.at,
        "offset": port.offset - (_passed(port.buffer) if port.at == port.buffer.base else 0),
        "register": port.register,
        "ahead": port.ahead,
        "active": port.active,
        "rows": held.frame() if held is not None else None,
        "pending": list(held.pending) if held is not None else [],
        "issued": port.issued,
        "gate": _take_gate(port),
        "passed": sorted(port.passed),
    }


def _restore_port(port: Port, value: dict[str, Any]) -> None:
    port.at, port.offset = value["at"], value["offset"]
    port.register, port.active = value["register"], value["active"]
    port.ahead, port.scanned = value.get("ahead", NEVER), port.at
    port.issued = tuple(value.get("issued", ()))
    _restore_gate(port, value.get("gate"))
    port.passed = set(value.get("passed", ()))
    if port.reorder is not None:
        port.reorder.clear()
        if value["rows"] is not None:
            port.reorder.add(value["rows"])
            port.buffer.ledger.hold(port.reorder.rows)
        port.reorder.extend(value["pending"])
