"""Where the queries of a mill run: in which job, and their parts in which groups of shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.algebra.upstream import TimeRequest
from millstream.logical.plan import Key
from millstream.physical.plan.exchange import MARK, exchanged
from millstream.physical.plan.partitioning import Keys
from millstream.physical.plan.preparation import PreparedPart
from millstream.physical.shard.batch import Status
from millstream.physical.wire.records import CloseGroup, OpenGroup, Record, StartQuery, StopQuery

if TYPE_CHECKING:
    from millstream.control.job.base import Job


GroupKey = tuple["Job", int, tuple[tuple[str, Key], ...] | None]
"""What tells groups of shards apart: their job and stage, and how what they read is hashed."""


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
    """The parts of a query, readers before those they read: the topmost one first."""

    job: Job
    parts: list[PlacedPart] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)
    """Parts that have been stopped already, when a driver ended in the middle of stopping the query."""

    @property
    def top(self) -> OpenGroup:
        return self.parts[0].group

    @property
    def groups(self) -> list[OpenGroup]:
        return [place.group for place in self.parts]

    def below(self, stream: str) -> frozenset[str]:
        """The streams of the catalog that a stream between stages is made of.

        Its name is that of the part that sends it, and the parts that this one reads are called after it."""
        sender = stream.removeprefix(MARK).rpartition(".")[0]
        parts = [place for place in self.parts if place.name == sender or place.name.startswith(f"{sender}/")]
        return frozenset[str]().union(*(place.reads for place in parts))


class Placements:
    """The placements of a mill's queries, and the groups of shards open for it."""

    def __init__(self, mill: str) -> None:
        self.mill = mill
        self.of: dict[str, Placement] = {}
        self.groups: dict[GroupKey, OpenGroup] = {}
        self._written: dict[Job, int] = {}
        """How far the logs of its jobs have to be worked off before all that the mill has said has been heard."""

    def jobs(self) -> set[Job]:
        """The jobs that run something for the mill."""
        return {job for job, *_ in list(self.groups)}

    def settle(
        self,
        name: str,
        job: Job,
        prepared: list[PreparedPart],
        opened: Callable[[PreparedPart], OpenGroup],
        started: Callable[[PreparedPart, dict[str, OpenGroup]], StartQuery],
    ) -> None:
        """Start the parts of a query in a job. `opened` makes a group for a part where there is none, `started` the
        record that starts it."""
        groups: dict[str, OpenGroup] = {}
        self.of[name] = placement = Placement(job)
        for made in prepared:
            key = group_key(job, made.keys, made.part.stage)
            if key not in self.groups:
                self.groups[key] = opened(made)
                job.append(self.groups[key])
            groups[made.part.name] = self.groups[key]
            placement.parts.append(PlacedPart(made.part.name, self.groups[key], made.reads))
            self._written[job] = job.append(started(made, groups))

    def tell(self, record: Record, job: Job | None = None) -> None:
        """Write a record to the log of a job, or of every job that runs something for the mill."""
        for each in self.jobs() if job is None else (job,):
            self._written[each] = each.append(record)

    def work_off(self) -> None:
        """Wait until the jobs have heard all that the mill has said."""
        for job in self.jobs():
            job.start()
            job.wait(self._written.get(job, 0))

    def leave(self, name: str) -> None:
        """Stop a query, and close the groups that nothing else runs in."""
        placement = self.of.pop(name)
        for place in reversed(placement.parts):  # senders before their readers
            if place.name not in placement.stopped:
                placement.job.append(StopQuery(place.group.group, place.name))
        self.close_unused()

    def close_unused(self) -> None:
        """Close the groups that run nothing any more: their shards would be called in every batch."""
        used = [group for placement in self.of.values() for group in placement.groups]
        for (job, *_), group in reversed(list(self.groups.items())):
            if group not in used:
                job.append(CloseGroup(group.group))
                self.groups = {key: kept for key, kept in self.groups.items() if (key[0], kept) != (job, group)}
                job.forget(group.labels)

    def clear(self) -> None:
        """Close all groups."""
        self.of.clear()
        self.close_unused()

    def heard_of(self, name: str) -> list[tuple[PlacedPart, int, Status]]:
        """The last report of the shards that run a query: the part of it, the number of the shard, its status."""
        placement = self.of[name]
        return [
            (part, number, status)
            for part in placement.parts
            for number, label in enumerate(part.group.labels)
            if (status := placement.job.status(label)) is not None
        ]

    def heard_all(self, name: str) -> bool:
        """Whether every shard that runs a query has reported."""
        placement = self.of[name]
        return all(label in placement.job.heard for group in placement.groups for label in group.labels)

    def asked(self) -> set[str]:
        """The streams whose time some operator has asked for in the last batch, in whichever stage it is."""
        heard = [job.heard.get(label) for (job, *_), group in [*self.groups.items()] for label in group.labels]
        said = [message for status in heard if status is not None for message in status.messages]
        asked = {stream for stream, message in said if isinstance(message, TimeRequest)}
        between = {stream for stream in asked if exchanged(stream)}
        return (asked - between).union(*(placed.below(stream) for stream in between for placed in self.of.values()))

    def ended(self, streams: set[str]) -> bool:
        """Whether those of these streams that queries read have ended on every shard."""
        return all(self._ended(placed.job, part, streams) for placed in self.of.values() for part in placed.parts)

    def _ended(self, job: Job, place: PlacedPart, streams: set[str]) -> bool:
        heard = [job.heard.get(label) for label in place.group.labels]
        return all(status is not None and place.reads & streams <= status.ended for status in heard)
