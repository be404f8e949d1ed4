"""The transition table: which macro each operator runs, and between which neighbours.

The graph walks as an automaton whose states are its operators. A row says what comes before and after a state (`–` for
a source, a sink or a break) and names the macro that decides between them. Changing strategy, setting breaks, adding
and removing operators are edits of this table made while data stays in its buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from millstream.runtime.engine.buffer import Buffer
    from millstream.runtime.engine.nodes import Fork, OperatorNode

NONE = "–"


class Row(NamedTuple):
    state: str
    pred: str
    succ: str
    transition: str


def operator_row(node: OperatorNode) -> Row:
    """The row of an operator as its surroundings and its strategy make it."""
    preds = [NONE if port.open else upstream_name(port.buffer) for port in node.ports]
    pred = NONE if all(p == NONE for p in preds) else ", ".join(preds)
    buffer = node.buffer
    if buffer.broken or not buffer.ports:
        succ = NONE
    else:
        succ = buffer.fork.name if buffer.fork is not None else buffer.ports[0].node.name
    place = {
        (False, False): "NOS",
        (True, False): "Source",
        (False, True): "Sink",
        (True, True): "Source-Sink",
    }[pred == NONE, succ == NONE]
    return Row(node.name, pred, succ, node.strategy.macro_name(place))


def fork_rows(fork: Fork, prefix: str) -> tuple[Row, ...]:
    """One row per operator that reads the shared buffer."""
    producer = fork.buffer.producer
    pred = producer.name if producer.executes else NONE
    readers = dict.fromkeys(port.node.name for port in fork.buffer.ports)
    return tuple(Row(fork.name, pred, reader, f"{prefix}-Fork") for reader in readers)


def upstream_name(buffer: Buffer) -> str:
    """What stands before a reader of this buffer."""
    return buffer.fork.name if buffer.fork is not None else buffer.producer.name


def format_table(rows: Iterable[Row]) -> str:
    """The table as text.

    >>> print(format_table([Row("select", "–", "count", "DFS-Source"), Row("count", "select", "–", "DFS-Sink")]))
    state   pred    succ   transition
    select  –       count  DFS-Source
    count   select  –      DFS-Sink
    """
    lines = [Row._fields, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
