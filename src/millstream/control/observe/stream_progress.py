"""How far each stream has been read, put together from the last words of the shards that read it.

| | |
|---|---|
| accepted, late, bad | the shards of a group added up; of several groups that read it, the one that has read most |
| behind | rows that wait, by what the source can tell of them |
| newest | the newest event time seen, of a stream whose time column is a TIMESTAMP |
| lag | the wall clock minus that, as long as the stream has not ended |

The lag says how old the newest event is, wherever the time went: on its way here, in a backlog, or because nothing has
happened since. There is none for a BIGINT time column, which need not have anything to do with the clock, for a stream
stamped on entry, whose newest event is always from just now, and on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.algebra.schema import TimeKind
from millstream.algebra.types import MICROS, Type
from millstream.errors import MillstreamError
from millstream.logical.catalog import LATE, StreamDefinition
from millstream.logical.plan import EVERYWHERE, Plan
from millstream.physical.plan.partitioning import Keys
from millstream.physical.shard.batch import Status
from millstream.physical.shard.topology import base_stream, scans

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

Counts = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """`newest` is in seconds since the epoch, `lag` in seconds; None: it cannot be told."""

    name: str
    accepted: int
    late: int
    bad: int
    behind: int | None = None
    newest: float | None = None
    lag: float | None = None


@dataclass(frozen=True, slots=True)
class _Readers:
    """A group of shards, by the last word of each."""

    statuses: list[Status]
    reads: set[str]
    keys: Keys

    def counts(self, stream: str) -> Counts:
        """Rows accepted, late and bad. Each shard counts its own; all of them count all, if late rows are read, or if
        the stream goes to every shard."""
        counts = [status.counts[stream] for status in self.statuses if stream in status.counts] or [(0, 0, 0)]
        whole = stream + LATE in self.reads or self.keys.get(stream) == EVERYWHERE
        accepted, late, bad = map(max if whole else sum, zip(*counts, strict=True))
        return accepted, late, bad


def stream_progress(mill: Mill) -> dict[str, StreamProgress]:
    """All streams that some query reads, and all that are fed from the driver."""
    waiting, groups = _waiting(mill), _groups(mill)
    made: dict[str, StreamProgress] = {}
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
        made[name] = StreamProgress(name, *counts, behind=waiting.get(name), newest=at, lag=lag)
    return made


def streams_read(plan: Plan) -> set[str]:
    """The base streams that a plan reads, or reads a companion of."""
    return {base_stream(scan.stream) for scan in scans(plan)}


def _waiting(mill: Mill) -> dict[str, int]:
    try:
        return mill.waiting()
    except (MillstreamError, OSError):  # a folder that is gone ends the job; here it only cannot be looked into
        return {}


def _groups(mill: Mill) -> Iterable[_Readers]:
    made: dict[tuple[str, int], _Readers] = {}
    for name, query in list(mill.queries.items()):
        try:
            job, heard = mill.job(name), mill.heard_of(name)
        except (MillstreamError, KeyError):  # it has just been stopped
            continue
        for group, keys in {place.group.group: place.group.keys for place, _, _ in heard}.items():
            statuses = [status for place, _, status in heard if place.group.group == group]
            readers = made.setdefault((job.id, group), _Readers(statuses, set(), keys or {}))
            readers.reads.update(scan.stream for scan in scans(query.plan))
    return made.values()


def _has_wall_time(stream: StreamDefinition) -> bool:
    schema = stream.schema
    return (
        schema.kind is TimeKind.EXTERNAL and schema.time is not None and schema.type_of(schema.time) is Type.TIMESTAMP
    )
