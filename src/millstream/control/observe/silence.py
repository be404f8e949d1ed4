"""Why a query has emitted no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.algebra.stream_id import StreamId
from millstream.amounts import amount
from millstream.control.observe.losses import losses
from millstream.control.observe.progress import ENDS, Progress, progress_of
from millstream.errors import MillstreamError
from millstream.ingest.losses import Losses
from millstream.logical.plan import Plan
from millstream.physical.shard.topology import scans

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

CONDITIONS = ("Pipeline", "Select")
GROUPS = ("WindowAggregate", "PaneAggregate")


@dataclass(slots=True)
class _Node:
    """An operator of all shards."""

    kind: str
    rows_in: int = 0
    rows_out: int = 0
    held: int = 0
    waiting: int = 0


def why_silent(mill: Mill, name: str) -> str:
    """Return why a query has emitted no row since the connection was opened; empty if it has emitted some,
    if it has failed, or if the reason is unknown."""
    query, found = mill.query(name), losses(mill)
    if query.failure is not None or query.finished is not None or query.plan.writes:
        return ""
    read = sorted({scan.id for scan in scans(query.plan)}, key=str)
    rows = {stream: found.get(stream.source, Losses()) for stream in read}
    if query.output.rows_made:
        return ""
    if not any(_given(stream, held) for stream, held in rows.items()):
        absent = (mill.connectors.absent(name) for name in sorted({stream.source for stream in read}))
        return " and ".join(filter(None, absent))
    own = {str(stream): held for stream, held in rows.items() if not stream.companion}
    if lost := [text for stream, held in own.items() if (text := _all_lost(stream, held))]:
        return " and ".join(lost)
    try:
        progress = progress_of(mill, name)
    except (MillstreamError, KeyError):  # it has just been stopped
        return ""
    return _blocked(query.plan, progress, sorted(stream for stream, held in own.items() if not held.rows))


def _given(stream: StreamId, held: Losses) -> int:
    """Number of rows of a stream or of its companion."""
    return {"late": held.late, "bad": held.bad}.get(stream.companion, held.rows)


def _all_lost(stream: str, held: Losses) -> str:
    if not held.rows or held.accepted:
        return ""
    if not held.late or not held.bad:
        all_rows = f"all {held.rows:,} rows of {stream} are" if held.rows > 1 else f"the only row of {stream} is"
        return f"{all_rows} {'late' if held.late else 'bad'}"
    return f"of {held.rows:,} rows of {stream} {held.late:,} are late and {held.bad:,} bad"


def _blocked(plan: Plan, progress: Progress, empty: list[str]) -> str:
    """The last operator that rows reached, and why it has emitted none."""
    nodes: dict[str, _Node] = {}
    for operator in progress.operators:
        reading = operator.reading
        if reading.kind not in ENDS:
            node = nodes.setdefault(operator.name, _Node(reading.kind))
            node.rows_in += reading.tuples_in
            node.rows_out += reading.tuples_out
            node.held += reading.state
            node.waiting += reading.buffered
    reached = [node for node in nodes.values() if (node.rows_in or node.waiting) and not node.rows_out]
    if not reached:
        read = any(operator.reading.tuples_out for operator in progress.operators)
        return "" if read else "no row meets its conditions, which are checked where the rows are read"
    node, silent = reached[-1], f"; no row of {' and '.join(empty)} came" if empty else ""
    if node.waiting and not node.rows_in:
        still = sorted({*empty, *_unpunctuated(plan, progress)})
        return f"rows wait for the time of {' and '.join(still) or 'another stream'}, which does not move"
    if node.kind in CONDITIONS:
        return f"no row meets a condition (WHERE, ON or HAVING), of {node.rows_in:,} that reached it"
    if node.kind in GROUPS and node.held:
        still = _unpunctuated(plan, progress)
        why = f"no punctuation of {' and '.join(still)} came" if still else "no time or punctuation has closed one"
        return f"{_open(node.held)}: {why}"
    if "Join" in node.kind:
        return f"no rows match in a join, of {node.rows_in:,} that reached it{silent}"
    return f"operator {node.kind} holds or drops all that reached it, {amount(node.rows_in, 'row')}{silent}"


def _open(groups: int) -> str:
    return f"{amount(groups, 'group')} {'is' if groups == 1 else 'are'} open"


def _unpunctuated(plan: Plan, progress: Progress) -> list[str]:
    """The streams whose time moves with punctuation alone, and that have sent none."""
    sent = {
        operator.name.rpartition("-")[0]
        for operator in progress.operators
        if operator.reading.kind == "source" and operator.reading.punctuations_out
    }
    return sorted({scan.stream for scan in scans(plan) if not scan.stream_schema.ordered} - sent)
