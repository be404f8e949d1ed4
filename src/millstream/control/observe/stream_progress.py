"""The progress of each stream, from the last reports of the shards that read it.

| | |
|---|---|
| accepted, late, bad | rows summed over the shards of a group, each of which counts its own; of several groups, those
  of the one that has read most; without readers, those that the last reader left |
| of a derived stream | if it diverts rows (`reports.divert`): those of its stream that fit, and those that do not |
| behind | rows that wait, as far as the source knows |
| newest | the newest event time seen, of a stream whose time column is a TIMESTAMP |
| lag | the wall clock minus `newest`, until the stream ends |

The lag is the age of the newest event, whatever the cause: a delay before Millstream, a backlog, or a stream without
new events. There is no lag for a BIGINT time column, which may be unrelated to the clock; for a stream stamped on
entry, whose newest event is always recent; and on a virtual clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.algebra.schema import TimeKind
from millstream.algebra.stream_id import StreamId
from millstream.algebra.types import MICROS, Type
from millstream.control.mill.readings import Counts
from millstream.control.observe.losses import losses
from millstream.control.observe.promises import Conduct, conduct
from millstream.control.reports.divert import DivertedRows
from millstream.errors import MillstreamError
from millstream.ingest.losses import Losses
from millstream.ingest.paged.wanted import NONE_SKIPPED, Skipped
from millstream.logical.catalog import StreamDefinition
from millstream.physical.shard.batch import Status

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """`newest`: seconds since the epoch; `lag`: seconds; None: unknown."""

    name: str
    accepted: int
    late: int
    bad: int
    behind: int | None = None
    newest: float | None = None
    lag: float | None = None
    skipped: Skipped = NONE_SKIPPED
    """What its source has left out because no reader wants it: see docs/feedback.md."""
    unwanted: tuple[str, ...] = ()
    """The patterns of the rows that no reader wants."""
    asleep: bool = False
    """True if the source does not test its rows for a while, since few were unwanted."""
    conduct: Conduct = field(default_factory=Conduct)
    """How it keeps its declared punctuation."""


@dataclass(frozen=True, slots=True)
class _Readers:
    """A group of shards: the last status of each, by number."""

    statuses: dict[int, Status]

    def counts(self, name: str) -> Counts:
        """Numbers of accepted, late and bad rows, of the reading of the stream that has read most."""
        found = {stream for status in self.statuses.values() for stream in status.counts}
        readings = (stream for stream in found if StreamId.of(stream).base == name)
        return max(map(self._counts, readings), default=(0, 0, 0), key=sum)

    def skipped(self, name: str) -> Skipped:
        """What the source of a stream has left out, of the reading that it was most of."""
        totals: dict[str, Skipped] = {}
        for status in self.statuses.values():
            for stream, count in status.skipped.items():
                if StreamId.of(stream).base == name:
                    totals[stream] = totals.get(stream, NONE_SKIPPED) + count
        return max(totals.values(), default=NONE_SKIPPED, key=lambda count: count.tested)

    def _counts(self, stream: str) -> Counts:
        counts = [status.counts[stream] for status in self.statuses.values() if stream in status.counts]
        accepted, late, bad = map(sum, zip(*counts, strict=True))
        return accepted, late, bad


def stream_progress(mill: Mill) -> dict[str, StreamProgress]:
    """The progress of all streams that a query reads or has read, or that are fed from the driver."""
    waiting, groups, known = _waiting(mill), list(_groups(mill)), losses(mill)
    unwanted, asleep = mill.relay.unwanted(), mill.relay.asleep()
    found: dict[str, StreamProgress] = {}
    for stream in mill.catalog.streams:
        source, name = mill.fed(stream.name), stream.name
        readers = [status for readers in groups for status in readers.statuses.values()]
        readings = [(status, read) for status in readers for read in status.counts if StreamId.of(read).base == name]
        if source is not None:
            counts, newest, ended = (source.accepted, source.late, source.bad), source.newest, source.ended
        elif readings:
            counts = max((readers.counts(name) for readers in groups), key=sum)
            newest = max((status.newest[read] for status, read in readings if read in status.newest), default=None)
            ended = all(read in status.ended for status, read in readings)
        elif any(mill.readings.counts(name)):
            counts, newest, ended = mill.readings.counts(name), None, False
        else:
            continue
        at = newest / MICROS if newest is not None and _has_wall_time(stream) else None
        lag = time.time() - at if at is not None and mill.time.wall and not ended else None
        skipped = max((readers.skipped(name) for readers in groups), default=NONE_SKIPPED, key=lambda c: c.tested)
        kept = conduct(stream, known.get(name, Losses()), mill.clock.now())
        found[name] = StreamProgress(
            name, *counts, waiting.get(name), at, lag, skipped, unwanted.get(name, ()), name in asleep, kept
        )
    for name in filter(mill.catalog.diverts, mill.catalog.derived):
        accepted, bad = DivertedRows.of(mill).counts(name)
        if accepted or bad:
            found[name] = StreamProgress(name, accepted, 0, bad)
    return found


def rows_in(mill: Mill, streams: Set[str] | None = None) -> int:
    """Number of rows read from these streams, or from all, and fed to them, since the jobs were opened. A row that
    several jobs have read counts once; late and bad rows count."""
    most: dict[str, int] = {}
    for job in mill.jobs.all():
        for (owner, stream), rows in [*job.rows_of.items()]:
            if owner == mill.name and (streams is None or stream in streams):
                most[stream] = max(rows, most.get(stream, 0))
    return sum(most.values())


def read_counts(mill: Mill, streams: Iterable[str]) -> dict[str, Counts]:
    """The counts of streams that jobs read, as their shards have last reported them."""
    groups = list(_groups(mill))
    return {
        stream: max((readers.counts(stream) for readers in groups), default=(0, 0, 0), key=sum) for stream in streams
    }


def _waiting(mill: Mill) -> dict[str, int]:
    try:
        return mill.waiting()
    except (MillstreamError, OSError):  # a missing folder stops the job; here only its rows are unknown
        return {}


def _groups(mill: Mill) -> Iterable[_Readers]:
    found: dict[tuple[str, int], _Readers] = {}
    for name in list(mill.queries):
        try:
            job, reports = mill.job(name), mill.reports(name)
        except (MillstreamError, KeyError):  # it has just been stopped
            continue
        for part, number, status in reports:
            found.setdefault((job.id, part.group.group), _Readers({})).statuses[number] = status
    return found.values()


def _has_wall_time(stream: StreamDefinition) -> bool:
    kind, time = stream.schema.kind, stream.schema.time
    return kind is TimeKind.EXTERNAL and time is not None and stream.schema.type_of(time) is Type.TIMESTAMP


def counts_of(mill: Mill, stream: str) -> dict[str, int]:
    """Numbers of accepted, late and bad rows of a stream (0 before a query has read it), or of a table."""
    if (table := stream.lower()) in mill.tables:
        return mill.written.counts(table)
    if stream.lower() in mill.catalog.derived:
        return DivertedRows.of(mill).all_counts(stream.lower())
    definition = mill.catalog.stream(stream)
    fed = mill.fed(definition.name)
    if fed is None and not mill.time.wall:
        mill.report_all()
    read = stream_progress(mill).get(definition.name) if fed is None else fed
    return {what: getattr(read, what, 0) for what in ("accepted", "late", "bad")}
