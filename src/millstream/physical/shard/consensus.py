"""Punctuation that operators of a shard hold back until all shards have received it: its report, and its release."""

from __future__ import annotations

from millstream.algebra.punctuation.pattern import Pattern
from millstream.physical.wire.records import Received
from millstream.runtime.consensus import Consensus
from millstream.runtime.engine import Graph


def received(graph: Graph) -> dict[str, tuple[Pattern, ...]]:
    """The punctuation that waits, by operator."""
    found = ((name, node.operator) for name, node in graph.operators.items())
    held = {name: each.waiting_for() for name, each in found if isinstance(each, Consensus)}
    return {name: patterns for name, patterns in held.items() if patterns}


def agree(graph: Graph, record: Received) -> bool:
    """Announce punctuation to an operator, or emit what has waited there. Return whether there is such an operator: its
    query may have stopped."""
    node = graph.operators.get(record.operator)
    if node is None or not isinstance(node.operator, Consensus):
        return False
    if not record.by_all:
        node.operator.announce(record.patterns)
    elif agreed := node.operator.agree(record.patterns):
        node.buffer.append(agreed)
    return True
