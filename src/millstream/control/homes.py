"""Where the queries of a mill run: in which job, and their parts in which groups of shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.logical.plan import Key
from millstream.physical.exchange import MARK, exchanged
from millstream.physical.partitioning import Keys
from millstream.physical.records import CloseGroup, OpenGroup, StopQuery
from millstream.physical.stage import Status

if TYPE_CHECKING:
    from millstream.control.job import Job


GroupKey = tuple["Job", int, tuple[tuple[str, Key], ...] | None]
"""What tells groups of shards apart: their job and stage, and how what they read is hashed."""


def group_key(job: Job, keys: Keys | None, stage: int) -> GroupKey:
    return job, stage, None if keys is None else tuple(sorted(keys.items()))


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a query and the group of shards that runs it. `reads`: the streams of the catalog that it reads."""

    name: str
    group: OpenGroup
    reads: frozenset[str]


@dataclass(slots=True)
class Home:
    """The parts of a query, readers before those they read: the topmost one first."""

    job: Job
    places: list[Place] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)
    """Parts that have been stopped already, when a driver ended in the middle of stopping the query."""

    @property
    def top(self) -> OpenGroup:
        return self.places[0].group

    @property
    def groups(self) -> list[OpenGroup]:
        return [place.group for place in self.places]

    def below(self, stream: str) -> frozenset[str]:
        """The streams of the catalog that a stream between stages is made of.

        Its name is that of the part that sends it, and the parts that this one reads are called after it."""
        sender = stream.removeprefix(MARK).rpartition(".")[0]
        parts = [place for place in self.places if place.name == sender or place.name.startswith(f"{sender}/")]
        return frozenset[str]().union(*(place.reads for place in parts))


class Homes:
    """The homes of a mill's queries, the groups of shards open for it, and the last word of every shard."""

    def __init__(self) -> None:
        self.of: dict[str, Home] = {}
        self.groups: dict[GroupKey, OpenGroup] = {}
        self._heard: dict[tuple[Job, int], Status] = {}

    def jobs(self) -> set[Job]:
        """The jobs that run something for the mill."""
        return {job for job, *_ in list(self.groups)}

    def group(self, job: Job, keys: Keys | None, stage: int, make: Callable[[], OpenGroup]) -> OpenGroup:
        """The group of a job that reads hashed by these keys in this stage; it is made if there is none."""
        key = group_key(job, keys, stage)
        if key not in self.groups:
            self.groups[key] = make()
            job.append(self.groups[key])
        return self.groups[key]

    def leave(self, name: str) -> None:
        """Stop a query, and close the groups that nothing else runs in."""
        home = self.of.pop(name)
        for place in reversed(home.places):  # nobody is sent anything any more when he is stopped
            if place.name not in home.stopped:
                home.job.append(StopQuery(place.group.group, place.name))
        self.close_unused()

    def close_unused(self) -> None:
        """Close the groups that run nothing any more: their shards would be called in every batch."""
        used = [group for home in self.of.values() for group in home.groups]
        for (job, *_), group in reversed(list(self.groups.items())):
            if group not in used:
                job.append(CloseGroup(group.group))
                self.groups = {key: kept for key, kept in self.groups.items() if (key[0], kept) != (job, group)}
                for label in group.labels:
                    self._heard.pop((job, label), None)

    def clear(self) -> None:
        """Close all groups."""
        self.of.clear()
        self.close_unused()

    def hear(self, job: Job, label: int, status: Status) -> None:
        self._heard[job, label] = status

    def heard_of(self, name: str) -> list[tuple[Place, int, Status]]:
        """The last word of the shards that run a query: the part of it, the number of the shard, its status."""
        home = self.of[name]
        found = [(place, n, (home.job, label)) for place in home.places for n, label in enumerate(place.group.labels)]
        return [(place, number, self._heard[key]) for place, number, key in found if key in self._heard]

    def heard_all(self, name: str) -> bool:
        """Whether every shard that runs a query has had its say."""
        return len(self.heard_of(name)) == sum(len(group.labels) for group in self.of[name].groups)

    def asked(self) -> set[str]:
        """The streams whose time some operator has asked for in the last batch, in whichever stage it is."""
        asked = {stream for status in [*self._heard.values()] for stream in status.asked}
        between = {stream for stream in asked if exchanged(stream)}
        return (asked - between).union(*(home.below(stream) for stream in between for home in self.of.values()))

    def ended(self, streams: set[str]) -> bool:
        """Whether those of these streams that queries read have ended on every shard."""
        return all(self._ended(home.job, place, streams) for home in self.of.values() for place in home.places)

    def _ended(self, job: Job, place: Place, streams: set[str]) -> bool:
        heard = [self._heard.get((job, label)) for label in place.group.labels]
        return all(status is not None and place.reads & streams <= status.ended for status in heard)
