"""The set-oriented answer of a query graph: what every node puts out, computed from whole streams at once.

A graph is a list of nodes in topological order; a node names the nodes it reads by index. Streams are lists of
(value, timestamp). The functions `match` and `combine` of a join are handed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Pair = tuple[int, int]


@dataclass(frozen=True)
class Node:
    """`kind` is source, filter (keep v % a != b), map (v + a), union, join (windows a, b) or count (windows of a)."""

    kind: str
    inputs: tuple[int, ...] = ()
    a: int = 0
    b: int = 0


def answers(
    graph: Sequence[Node],
    streams: Sequence[Sequence[Pair]],
    match: Callable[[int, int], bool],
    combine: Callable[[int, int], int],
) -> list[list[Pair]]:
    """What each node puts out in the end; the order within a list means nothing."""
    outputs: list[list[Pair]] = []
    sources = iter(streams)
    for node in graph:
        read = [outputs[i] for i in node.inputs]
        kind = node.kind
        if kind == "source":
            made = list(next(sources))
        elif kind == "filter":
            made = [(v, t) for v, t in read[0] if v % node.a != node.b]
        elif kind == "map":
            made = [(v + node.a, t) for v, t in read[0]]
        elif kind == "union":
            made = [pair for stream in read for pair in stream]
        elif kind == "join":
            made = [
                (combine(v, w), max(t, s))
                for v, t in read[0]
                for w, s in read[1]
                if match(v, w) and (0 <= s - t <= node.a or 0 <= t - s <= node.b)
            ]
        else:
            windows = Counter(t // node.a * node.a + node.a for _, t in read[0])
            made = [(count, end) for end, count in windows.items()]
        outputs.append(made)
    return outputs
