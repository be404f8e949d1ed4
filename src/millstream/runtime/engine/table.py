"""The transition table: the macro of each operator, and its neighbours.

A walk is a run of an automaton whose states are the operators. A row has the predecessor and the successor of a state
(`–` for a source, a sink or a break) and the macro that chooses between them. Changing the strategy, setting breaks,
adding and removing operators are edits of this table; data stays in its buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from millstream.runtime.engine.nodes import Fork, OperatorNode

NONE = "–"


class Row(NamedTuple):
    state: str
    pred: str
    succ: str
    transition: str


def operator_row(node: OperatorNode) -> Row:
    """Return the row of an operator, derived from its neighbours and its strategy."""
    preds = [NONE if port.open else (port.buffer.fork or port.buffer.producer).name for port in node.ports]
    pred = NONE if all(p == NONE for p in preds) else ", ".join(preds)
    buffer = node.buffer
    if buffer.broken or not buffer.ports:
        succ = NONE
    else:
        succ = (buffer.fork or buffer.ports[0].node).name
    ends = [end for end, neighbour in (("Source", pred), ("Sink", succ)) if neighbour == NONE]
    return Row(node.name, pred, succ, f"{node.strategy.rules.prefix}-{'-'.join(ends) or 'NOS'}")


def fork_rows(fork: Fork, prefix: str) -> tuple[Row, ...]:
    """Return one row per operator that reads the shared buffer."""
    producer = fork.buffer.producer
    pred = producer.name if producer.executes else NONE
    readers = dict.fromkeys(port.node.name for port in fork.buffer.ports)
    return tuple(Row(fork.name, pred, reader, f"{prefix}-Fork") for reader in readers)


def format_table(rows: Iterable[Row]) -> str:
    """Return the table as text.

    >>> print(format_table([Row("select", "–", "count", "DFS-Source"), Row("count", "select", "–", "DFS-Sink")]))
    state   pred    succ   transition
    select  –       count  DFS-Source
    count   select  –      DFS-Sink
    """
    lines = [Row._fields, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
