"""The progress of each stream, from the last reports of the shards that read it.

| | |
|---|---|
| accepted, late, bad | rows summed over the shards of a group; of several groups, those of the one that has read most |
| behind | rows that wait, as far as the source knows |
| newest | the newest event time seen, of a stream whose time column is a TIMESTAMP |
| lag | the wall clock minus `newest`, until the stream ends |

The lag is the age of the newest event, whatever the cause: a delay before Millstream, a backlog, or a stream without
new events. There is no lag for a BIGINT time column, which may be unrelated to the clock; for a stream stamped on
entry, whose newest event is always recent; and on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.algebra.schema import TimeKind
from millstream.algebra.types import MICROS, Type
from millstream.errors import MillstreamError
from millstream.logical.catalog import LATE, StreamDefinition
from millstream.logical.plan import EVERYWHERE
from millstream.physical.plan.partitioning import Keys
from millstream.physical.shard.batch import Status
from millstream.physical.shard.topology import scans

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

Counts = tuple[int, int, int]


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


@dataclass(frozen=True, slots=True)
class _Readers:
    """A group of shards: the last status of each, the streams that its queries read, its keys."""

    statuses: list[Status]
    reads: set[str]
    keys: Keys

    def counts(self, stream: str) -> Counts:
        """Numbers of accepted, late and bad rows. Each shard counts its own rows; if a query reads the late rows or
        the stream goes to every shard, each shard counts all."""
        counts = [status.counts[stream] for status in self.statuses if stream in status.counts] or [(0, 0, 0)]
        whole = stream + LATE in self.reads or self.keys.get(stream) == EVERYWHERE
        accepted, late, bad = map(max if whole else sum, zip(*counts, strict=True))
        return accepted, late, bad


def stream_progress(mill: Mill) -> dict[str, StreamProgress]:
    """The progress of all streams that a query reads or that are fed from the driver."""
    waiting, groups = _waiting(mill), _groups(mill)
    found: dict[str, StreamProgress] = {}
    for stream in mill.catalog.streams:
        source, name = mill.fed(stream.name), stream.name
        statuses = [status for readers in groups for status in readers.statuses if name in status.counts]
        if source is not None:
            counts, newest, ended = (source.accepted, source.late, source.bad), source.newest, source.ended
        elif statuses:
            counts = max(readers.counts(name) for readers in groups)
            newest = max((status.newest[name] for status in statuses if name in status.newest), default=None)
            ended = all(name in status.ended for status in statuses)
        else:
            continue
        at = newest / MICROS if newest is not None and _has_wall_time(stream) else None
        lag = mill.clock.now() / MICROS - at if at is not None and mill.time.wall and not ended else None
        found[name] = StreamProgress(name, *counts, behind=waiting.get(name), newest=at, lag=lag)
    return found


def _waiting(mill: Mill) -> dict[str, int]:
    try:
        return mill.waiting()
    except (MillstreamError, OSError):  # a missing folder stops the job; here only its rows are unknown
        return {}


def _groups(mill: Mill) -> Iterable[_Readers]:
    found: dict[tuple[str, int], _Readers] = {}
    for name, query in list(mill.queries.items()):
        try:
            job, reports = mill.job(name), mill.reports(name)
        except (MillstreamError, KeyError):  # it has just been stopped
            continue
        for group, keys in {part.group.group: part.group.keys for part, _, _ in reports}.items():
            statuses = [status for part, _, status in reports if part.group.group == group]
            readers = found.setdefault((job.id, group), _Readers(statuses, set(), keys or {}))
            readers.reads.update(scan.stream for scan in scans(query.plan))
    return found.values()


def _has_wall_time(stream: StreamDefinition) -> bool:
    kind, time = stream.schema.kind, stream.schema.time
    return kind is TimeKind.EXTERNAL and time is not None and stream.schema.type_of(time) is Type.TIMESTAMP
