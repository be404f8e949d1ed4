"""The numbers of rows that did not count, in all streams and queries: late, bad, dropped by PACE, refused by tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.control.observe.loss_reports import percent
from millstream.control.observe.losses import losses, refused
from millstream.control.observe.progress import progress_of, running
from millstream.logical.nodes.pace import Pace

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def paced(mill: Mill, name: str) -> int:
    """Number of tuples that PACE has dropped in a query, on all shards; it survives a restart."""
    if (query := mill.query(name)).failure is not None or not any(isinstance(p, Pace) for p in query.plan.walk()):
        return 0
    mill.report_all()
    return progress_of(mill, name).paced


def counted(mill: Mill) -> str:
    """The numbers of late and bad rows of all streams, of those that PACE dropped and of rows that tables refused, as
    text; empty if there are none."""
    found = losses(mill).values()
    rows = sum(held.rows for held in found)
    numbers = {"late": sum(held.late for held in found), "bad": sum(held.bad for held in found)}
    parts = [f"{number:,} {what} ({percent(number, rows)})" for what, number in numbers.items() if number]
    if dropped := sum(progress.paced for progress in running(mill)):
        parts.append(f"{dropped:,} dropped by PACE")
    if number := sum(number for number, _ in refused(mill).values()):
        parts.append(f"{number:,} refused by tables")
    return ", ".join(parts)
