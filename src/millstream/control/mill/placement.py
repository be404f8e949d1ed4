"""Placements: the job that runs a query of a mill, and the group of shards that runs each of its parts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from millstream.algebra.stream_id import StreamId, part_path
from millstream.logical.plan import Key
from millstream.physical.plan.partitioning import Keys
from millstream.physical.plan.preparation import PreparedPart
from millstream.physical.shard.batch import Status
from millstream.physical.wire.records import CloseGroup, OpenGroup, Record, Rekey, Settings, StartQuery, StopQuery
from millstream.runtime.engine.demand import NOT_AT_ALL, Lag, Levels, awaited, merged, raised

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.deliveries import Deliveries


GroupKey = tuple["Job", int, tuple[tuple[str, Key], ...] | str | None]
"""The job and stage of a group of shards, and the keys that its input is hashed on, or the partitioned table that it
holds: no two groups share all three."""


def group_key(job: Job, keys: Keys | None, stage: int, table: str = "") -> GroupKey:
    return job, stage, table or (None if keys is None else tuple(sorted(keys.items())))


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part of a query, the group of shards that runs it, and the record that has started it. `reads`: the streams of
    the catalog that it reads, or its own readings of them."""

    name: str
    group: OpenGroup
    reads: frozenset[str]
    started: StartQuery


@dataclass(slots=True)
class Placement:
    """The parts of a query. A part precedes the parts it reads, so the topmost one is the first."""

    job: Job
    parts: list[PlacedPart] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)
    """Parts that are stopped already, if the driver ended while it stopped the query."""
    parked: bool = False
    """True once shards were asked for what its operators held."""
    since: int = 0
    """The position in the job's log from which its results are its own: a batch that ends before may have results of an
    earlier query of the same name."""

    @property
    def top(self) -> OpenGroup:
        return self.parts[0].group

    @property
    def groups(self) -> list[OpenGroup]:
        return [part.group for part in self.parts]

    @property
    def reads(self) -> set[str]:
        """The streams that its parts read."""
        return {stream for part in self.parts for stream in part.reads}

    def reports(self) -> list[tuple[PlacedPart, int, Status]]:
        """The last report of each shard that has reported: the part it runs, its number, its status."""
        return [
            (part, number, status)
            for part in self.parts
            for number, label in enumerate(part.group.labels)
            if (status := self.job.status(label)) is not None
        ]

    def all_reported(self) -> bool:
        return all(label in self.job.heard for group in self.groups for label in group.labels)


class Placements:
    """The placements of a mill's queries, and the groups of shards open for the mill."""

    def __init__(self, mill: str) -> None:
        self.mill = mill
        self.of: dict[str, Placement] = {}
        self.groups: dict[GroupKey, OpenGroup] = {}
        self._written: dict[Job, int] = {}
        """The end of the mill's last record in the log of each job."""
        self._owed: dict[Job, int] = {}
        """The end of the last record that follows from what shards have reported."""

    def jobs(self) -> set[Job]:
        """The jobs in which the mill has groups."""
        return {job for job, *_ in list(self.groups)}

    def groups_of(self, job: Job) -> list[OpenGroup]:
        """The groups of shards that the mill has in a job."""
        return [group for (owner, *_), group in list(self.groups.items()) if owner is job]

    def open_group(self, job: Job, prepared: PreparedPart, settings: Settings, tenant: Deliveries) -> OpenGroup:
        """Return the group for a part of a query; open one if there is none."""
        keys, stage, table = prepared.keys, prepared.part.stage, prepared.table
        key = group_key(job, keys, stage, table)
        if key not in self.groups:
            number, labels = job.allot(job.shards if keys is not None else 1, tenant)
            opened = OpenGroup(number, self.mill, labels, keys, settings, stage, table=table)
            job.append(opened)  # before it counts as open: the disk may be full
            self.groups[key] = opened
        elif table and (merged := {**(self.groups[key].keys or {}), **(keys or {})}) != self.groups[key].keys:
            job.append(Rekey(self.groups[key].group, merged))
            self.groups[key] = replace(self.groups[key], keys=merged)
        return self.groups[key]

    def append(self, record: Record, job: Job | None = None) -> int:
        """Append a record to the log of a job; None: of every job in which the mill has groups. Return the position
        behind it, in the log of the last one."""
        end = 0
        for each in self.jobs() if job is None else (job,):
            end = self._written[each] = each.append(record)
        return end

    def owe(self, job: Job, record: Record) -> int:
        """Append a record that follows from what shards have reported: what was fed is processed once they have applied
        it. Return the position behind it. The delivering thread calls it."""
        self._owed[job] = job.append(record)
        return self._owed[job]

    def begin(self, placement: Placement, record: StartQuery) -> None:
        """Append the record that starts a part of a query."""
        end = self._written[placement.job] = placement.job.append(record)
        placement.since = placement.since or end

    def share(self, name: str, other: str, *, punctuated: bool) -> None:
        """Start a query on the operators of another one with the same plan."""
        placed = self.of[other]
        top, *below = placed.parts
        names = tuple(part.name for part in below)
        record = replace(top.started, name=name, punctuated=punctuated, shared=other, below=names)
        self.of[name] = Placement(placed.job, [PlacedPart(name, top.group, top.reads, record), *below])
        self.begin(self.of[name], record)

    def free_base(self, name: str) -> str:
        """A name for the parts of a query that no part has: parts of a dropped query run on while others share them."""
        paths = (part_path(part.name) for placement in self.of.values() for part in placement.parts)
        used = {query for query, number in paths if number}
        bases = (name if number == 1 else f"{name}#{number}" for number in count(1))
        return next(base for base in bases if base not in used)

    def wait(self) -> None:
        """Wait until the jobs have processed all records of the mill."""
        for job in self.jobs():
            job.start()
            job.wait(reached := self._written.get(job, 0))
            while self._owed.get(job, 0) > reached:
                job.wait(reached := self._owed[job])

    def halt(self, name: str, failed: set[str]) -> None:
        """Stop the parts of a failed query that no other query than failed ones shares; its placement stays until
        `remove`. A delivering thread may call it."""
        placement = self.of[name]
        kept = {part.name for other, placed in [*self.of.items()] if other not in failed for part in placed.parts}
        for part in reversed(placement.parts):
            if part.name not in placement.stopped | kept:
                placement.stopped.add(part.name)
                placement.job.append(StopQuery(part.group.group, part.name))

    def remove(self, name: str) -> None:
        """Stop a query but for the parts that others share, and close the groups that run no other query."""
        placement = self.of.pop(name)
        kept = {part.name for other in self.of.values() for part in other.parts}
        for part in reversed(placement.parts):  # senders before their readers
            if part.name not in placement.stopped | kept:
                placement.job.append(StopQuery(part.group.group, part.name))
        self.close_unused()

    def close_unused(self) -> None:
        """Close the groups that run no query: otherwise every batch would call their shards."""
        used = {(placement.job, group.group) for placement in self.of.values() for group in placement.groups}
        for key, group in reversed(list(self.groups.items())):
            job = key[0]
            if (job, group.group) not in used:
                job.append(CloseGroup(group.group))
                del self.groups[key]
                job.forget(group.labels)

    def read(self) -> set[str]:
        """The streams that queries read."""
        return {name for placement in [*self.of.values()] for part in placement.parts for name in part.reads}

    def requested(self, waiting: Collection[str] | None = None) -> set[str]:
        """The streams of the catalog whose time an operator, in any stage, waits for. `waiting`: one of these
        operators."""
        streams: set[str] = set()
        for (job, *_), group in [*self.groups.items()]:
            times: dict[str, int] = {}
            lags: dict[str, list[Lag]] = {}
            for status in filter(None, map(job.heard.get, group.labels)):
                for operator, (time, levels) in status.demands.items():
                    if waiting is not None and operator not in waiting:
                        continue
                    times[operator] = min(time, times.get(operator, time))
                    lags.setdefault(operator, []).append(self._across(job, levels))
            for operator, time in times.items():
                lag = merged(lags[operator])
                if lag.held > time:
                    streams |= awaited(time, lag.levels)
        return streams

    def _across(self, job: Job, levels: Levels) -> Lag:
        """What levels depend on: a stream between stages on those that the part which sends it reads."""
        return merged(
            raised(self._behind(job, stream), level) if stream.exchanged else Lag(NOT_AT_ALL, {str(stream): level})
            for stream, level in zip(map(StreamId.of, levels), levels.values(), strict=True)
        )

    def _behind(self, job: Job, stream: StreamId) -> Lag:
        assert stream.shard is not None
        parts = [part for placed in self.of.values() for part in placed.parts if part.name == stream.part]
        status = job.heard.get(parts[0].group.labels[stream.shard]) if parts else None
        if status is None or stream.part not in status.lags:
            return Lag(NOT_AT_ALL, {})
        held, levels = status.lags[stream.part]
        behind = self._across(job, levels)
        return Lag(min(held, behind.held), behind.levels)

    def pending(self) -> set[Job]:
        """The jobs in which an operator has work left that it limits per batch."""
        return {
            job
            for (job, *_), group in [*self.groups.items()]
            if any(status.pending for status in filter(None, map(job.heard.get, group.labels)))
        }

    def ended(self, streams: set[str]) -> bool:
        """Return whether every one of these streams that a query reads has ended on every shard."""
        return all(
            status is not None and {name for name in part.reads if StreamId.of(name).base in streams} <= status.ended
            for placement in self.of.values()
            for part in placement.parts
            for status in map(placement.job.heard.get, part.group.labels)
        )
