"""What the operators of failed queries held, in a folder of the job or in memory, until the queries start again.

A failed query has a head: its parts with their shards, the state of its output, and the states of streams' sources when
it was placed. Each shard of a part sends a parcel in the next batch (`physical.shard.parking`), which is on disk before
that batch is committed. Without the parcels of all shards the query starts again with nothing held. `batches.log` names
what is on disk.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.algebra import values
from millstream.atomic_file import write_whole
from millstream.control.job.parts import content, placed
from millstream.physical.shard.parking import shape
from millstream.physical.wire.records import Unpark

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.placement import Placement
    from millstream.physical.plan.preparation import PreparedPart
    from millstream.physical.wire.records import OpenGroup

Parcels = dict[tuple[int, int], bytes]
"""By the number of the part and that of the shard."""


@values.value("parking_head")
@dataclass(frozen=True, slots=True)
class ParkingHead:
    """`parts`: name, labels of its shards, and shape of each part; `sources`: the states with which the readings of
    declared streams began."""

    parts: tuple[tuple[str, tuple[int, ...], str], ...]
    sources: Mapping[str, Any] = field(default_factory=dict)
    output: Mapping[str, Any] = field(default_factory=dict)


def head_of(placement: Placement, sources: Mapping[str, Any], output: Mapping[str, Any]) -> ParkingHead:
    parts = [(p.name, p.group.labels, shape(p.started.plan, p.group.keys)) for p in placement.parts]
    return ParkingHead(tuple(parts), sources, output)


class Parking:
    """The parking of a query in a job."""

    def __init__(self, job: Job, mill: str, query: str) -> None:
        name = hashlib.sha1(f"{mill}/{query}".encode()).hexdigest()[:16]
        self._name, self._place, self._query, self._noted = name, f"parked/{name}", query, job.noted
        self._folder, self._mark = None if job.folder is None else job.folder / self._place, job.mark
        self._held: dict[tuple[str, str], bytes] = job.parked
        """In memory: what would be files."""

    def _put(self, key: str, held: Any) -> None:
        if self._folder is None or self._noted is None:
            self._held[self._name, key] = values.encode(held)
        else:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / key, placed(held, self._folder / key, self._mark), durable=True, private=True)
            named = sorted({*self._noted.names(self._place), key})
            self._noted.name(self._place, self._query, tuple(named), synced=False)

    def _get(self, key: str) -> Any:
        if self._folder is not None:
            return content(path, self._mark, self._query) if (path := self._folder / key).exists() else None
        data = self._held.get((self._name, key))
        return None if data is None else values.decode(data, "the state of a failed query")

    def begin(self, head: ParkingHead) -> None:
        self.clear()
        self._put("head", head)

    def head(self) -> ParkingHead | None:
        found: ParkingHead | None = self._get("head")
        return found

    def take(self, label: int, part: str, parcel: bytes) -> None:
        """Take the parcel of a part from a shard."""
        for number, (name, labels, _) in enumerate(head.parts if (head := self.head()) is not None else ()):
            if name == part and label in labels:
                self._put(f"{number}.{labels.index(label)}", parcel)

    def parcels(self) -> Parcels | None:
        """The parcels of all shards; None if one is missing."""
        head = self.head()
        shards = [(n, k) for n, part in enumerate(head.parts) for k in range(len(part[1]))] if head is not None else []
        found = {(part, number): self._get(f"{part}.{number}") for part, number in shards}
        held = {key: parcel for key, parcel in found.items() if parcel is not None}
        return held if held and len(held) == len(found) else None

    def clear(self) -> None:
        for key in [key for key in self._held if key[0] == self._name]:
            del self._held[key]
        if self._folder is not None and self._noted is not None:
            self._noted.name(self._place, self._query, ())
            shutil.rmtree(self._folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Resumption:
    """What a failed query starts again with."""

    head: ParkingHead
    parcels: Parcels

    def fits(self, prepared: Sequence[PreparedPart], groups: Sequence[OpenGroup]) -> bool:
        """Return whether parts and groups are those that it was parked from, but for the names of readings."""
        here = [(len(g.labels), shape(p.plan, g.keys)) for p, g in zip(prepared, groups, strict=True)]
        return here == [(len(labels), made) for _, labels, made in self.head.parts]

    def records(self, part: int, group: OpenGroup, name: str, parking: int) -> Iterable[Unpark]:
        """The records that give the shards of a part what they held."""
        for (number, shard), parcel in self.parcels.items():
            if number == part and parcel:
                yield Unpark(group.group, name, shard, parking, parcel)
