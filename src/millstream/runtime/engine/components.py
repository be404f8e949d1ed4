"""The connected parts of a graph. Each is a scheduling unit of its own: nothing flows between them."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.runtime.engine.buffer import Buffer
from millstream.runtime.engine.nodes import OperatorNode, Producer, Sink

Node = Producer | Sink


def components(nodes: Iterable[Node]) -> list[list[Node]]:
    """The nodes grouped by component, in the order given."""
    parts: list[list[Node]] = []
    part_of: dict[Buffer, list[Node]] = {}
    for node in nodes:
        touched: list[Buffer] = [node.buffer]
        if isinstance(node, OperatorNode):
            touched += [port.buffer for port in node.ports]
        known: list[list[Node]] = []
        for buffer in touched:
            part = part_of.get(buffer)
            if part is not None and not any(part is other for other in known):
                known.append(part)
        part = known[0] if known else []
        if not known:
            parts.append(part)
        for other in known[1:]:
            part += other
            parts = [kept for kept in parts if kept is not other]
            part_of.update({buffer: part for buffer, held in part_of.items() if held is other})
        part.append(node)
        part_of.update(dict.fromkeys(touched, part))
    return parts
