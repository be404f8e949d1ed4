"""Where the queries of a mill run: in which job, and their parts in which groups of shards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.physical.exchange import MARK
from millstream.physical.partitioning import Key, Keys
from millstream.physical.records import OpenGroup

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
