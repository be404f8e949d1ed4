"""Where to break a graph into fragments.

A break makes a buffer the end of one fragment and the beginning of the next; each fragment is scheduled by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.runtime.engine.nodes import OperatorNode


def canonical_cut(operators: Iterable[OperatorNode]) -> list[OperatorNode]:
    """The operators to break after so that only paths are left: before every port of an operator with several
    inputs, and wherever several operators read one buffer."""
    cut: dict[OperatorNode, None] = {}
    for node in operators:
        if len(node.buffer.ports) > 1:
            cut[node] = None
        if len(node.ports) > 1:
            producers = [port.buffer.producer for port in node.ports]
            cut.update({p: None for p in producers if isinstance(p, OperatorNode)})
    return list(cut)


def chain_fragments(times: Sequence[float], sizes: Sequence[float]) -> list[int]:
    """After which operators of a path to break so that memory falls fastest.

    `times` are the processing times per tuple of the operators, `sizes` the expected size of what is left of one input
    tuple before the first and after each operator (tuple size times selectivity), never growing. From each point the
    fragment goes to where size falls most steeply per unit of time, the farther one if equal. Returns the number of
    operators before each break.

    >>> chain_fragments([1, 1, 1], [1.0, 0.9, 0.2, 0.1])
    [2]
    >>> chain_fragments([1, 1], [1.0, 0.5, 0.0])
    []
    """
    elapsed = [0.0]
    for time in times:
        elapsed.append(elapsed[-1] + time)
    cut: list[int] = []
    start = 0
    while start < len(times):
        best = max(
            range(start + 1, len(sizes)),
            key=lambda end: ((sizes[start] - sizes[end]) / (elapsed[end] - elapsed[start]), end),
        )
        cut.append(best)
        start = best
    return cut[:-1]
