"""Ports that are added to a merging operator and removed while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.schema import NEVER
from millstream.runtime.engine.merge import MergeNode
from millstream.runtime.engine.nodes import Producer
from millstream.runtime.engine.port import Port

if TYPE_CHECKING:
    from millstream.runtime.engine.graph import Graph


def attach(graph: Graph, node: MergeNode, producer: Producer, *, ordered: bool) -> None:
    """Let an operator read one more node from now on. Its readers learn its time anew, which may be lower than before:
    they must not have promised more than the time of their other inputs."""
    port = Port(node, len(node.ports), producer.buffer, ordered=ordered, merging=True)
    node.ports = (*node.ports, port)
    producer.buffer.ports = (*producer.buffer.ports, port)
    node.sent = node.latest_out = NEVER
    for reader in node.buffer.ports:
        reader.register = NEVER
    node.arrange()
    graph.reshape([node.buffer, producer.buffer])


def detach(graph: Graph, node: MergeNode, producer: Producer) -> int:
    """End the reading of a node, and drop what waits there; return the position of the port."""
    index = next(port.index for port in node.ports if port.buffer is producer.buffer)
    node.ports[index].detach()
    node.ports = tuple(port for port in node.ports if port.index != index)
    for place, port in enumerate(node.ports):
        port.index = place
    graph.ledger.ready[node] = None
    graph.reshape([node.buffer, producer.buffer])
    return index
