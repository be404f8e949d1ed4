"""Placements: the job that runs a query of a mill, and the group of shards that runs each of its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.algebra.upstream import TimeRequest
from millstream.logical.plan import Key
from millstream.physical.plan.exchange import MARK, exchanged
from millstream.physical.plan.partitioning import Keys
from millstream.physical.plan.preparation import PreparedPart
from millstream.physical.shard.batch import Status
from millstream.physical.wire.records import CloseGroup, OpenGroup, Record, Settings, StopQuery

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.deliveries import Deliveries


GroupKey = tuple["Job", int, tuple[tuple[str, Key], ...] | None]
"""The job and stage of a group of shards, and the keys that its input is hashed on: no two groups share all three."""


def group_key(job: Job, keys: Keys | None, stage: int) -> GroupKey:
    return job, stage, None if keys is None else tuple(sorted(keys.items()))


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part of a query and the group of shards that runs it. `reads`: the streams of the catalog that it reads."""

    name: str
    group: OpenGroup
    reads: frozenset[str]


@dataclass(slots=True)
class Placement:
    """The parts of a query. A part precedes the parts it reads, so the topmost one is the first."""

    job: Job
    parts: list[PlacedPart] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)
    """Parts that are stopped already, if the driver ended while it stopped the query."""

    @property
    def top(self) -> OpenGroup:
        return self.parts[0].group

    @property
    def groups(self) -> list[OpenGroup]:
        return [part.group for part in self.parts]

    def below(self, stream: str) -> frozenset[str]:
        """The streams of the catalog that a stream between stages is derived from.

        The stream is named after the part that sends it; the names of the parts below that one begin with its name."""
        sender = stream.removeprefix(MARK).rpartition(".")[0]
        parts = [part for part in self.parts if part.name == sender or part.name.startswith(f"{sender}/")]
        return frozenset[str]().union(*(part.reads for part in parts))

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

    def jobs(self) -> set[Job]:
        """The jobs in which the mill has groups."""
        return {job for job, *_ in list(self.groups)}

    def open_group(self, job: Job, prepared: PreparedPart, settings: Settings, tenant: Deliveries) -> OpenGroup:
        """Return the group for a part of a query; open one if there is none."""
        keys, stage = prepared.keys, prepared.part.stage
        key = group_key(job, keys, stage)
        if key not in self.groups:
            number, labels = job.allot(job.shards if keys is not None else 1, tenant)
            self.groups[key] = OpenGroup(number, self.mill, labels, keys, settings, stage)
            job.append(self.groups[key])
        return self.groups[key]

    def append(self, record: Record, job: Job | None = None) -> None:
        """Append a record to the log of a job; None: of every job in which the mill has groups."""
        for each in self.jobs() if job is None else (job,):
            self._written[each] = each.append(record)

    def wait(self) -> None:
        """Wait until the jobs have processed all records of the mill."""
        for job in self.jobs():
            job.start()
            job.wait(self._written.get(job, 0))

    def remove(self, name: str) -> None:
        """Stop a query, and close the groups that run no other query."""
        placement = self.of.pop(name)
        for part in reversed(placement.parts):  # senders before their readers
            if part.name not in placement.stopped:
                placement.job.append(StopQuery(part.group.group, part.name))
        self.close_unused()

    def close_unused(self) -> None:
        """Close the groups that run no query: otherwise every batch would call their shards."""
        used = [(placement.job, group) for placement in self.of.values() for group in placement.groups]
        for key, group in reversed(list(self.groups.items())):
            job = key[0]
            if (job, group) not in used:
                job.append(CloseGroup(group.group))
                del self.groups[key]
                job.forget(group.labels)

    def requested(self) -> set[str]:
        """The streams of the catalog whose time an operator, in any stage, requested in the last batch."""
        reports = [job.heard.get(label) for (job, *_), group in [*self.groups.items()] for label in group.labels]
        messages = [message for status in reports if status is not None for message in status.messages]
        streams = {stream for stream, message in messages if isinstance(message, TimeRequest)}
        between = {stream for stream in streams if exchanged(stream)}
        return (streams - between).union(*(placed.below(stream) for stream in between for placed in self.of.values()))

    def ended(self, streams: set[str]) -> bool:
        """Return whether every one of these streams that a query reads has ended on every shard."""
        return all(
            status is not None and part.reads & streams <= status.ended
            for placement in self.of.values()
            for part in placement.parts
            for status in map(placement.job.heard.get, part.group.labels)
        )
