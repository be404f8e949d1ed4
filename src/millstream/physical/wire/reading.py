"""What each batch of a job is made of: how far the control log is read, the clock, and the place in every stream.

One offset steers a whole batch, so that a batch that is replayed from its offsets is the same batch. Only `latest`
looks at the clock and at what has arrived. Spark asks a reader next to the driver (`page_source`); a job in one process
asks it directly. Rows are read and packed wherever the splits are handed to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.algebra.values import value
from millstream.ingest.paged import PagedSource, Split, open_paged
from millstream.ingest.paged.split import EndSplit
from millstream.logical.catalog import StreamDefinition
from millstream.physical.shard.topology import Route, StreamKey, Topology, adopted
from millstream.physical.wire.packing import pack
from millstream.physical.wire.records import OpenGroup, Record
from millstream.physical.wire.shard_split import ShardSplit, Target

Offset = dict[str, Any]


class Log(Protocol):
    """A control log, as far as a reader knows it."""

    def end(self) -> int: ...
    def read(self, start: int, end: int) -> Iterator[Record]: ...


@value("control")
@dataclass(frozen=True, slots=True)
class Control:
    """What a shard hears at the beginning of a batch: the log up to this position, and the clock."""

    position: int
    now: int
    records: list[Record]


@dataclass(frozen=True, slots=True)
class SplitWork:
    """A split of a stream to be read and packed."""

    seq: int
    stream: StreamDefinition
    split: Split
    columns: tuple[str, ...]
    targets: tuple[Target, ...]

    def packed(self) -> Iterator[tuple[int, ShardSplit]]:
        """What each shard gets of it, by label."""
        return pack(self.stream, self.split, self.columns, self.targets)


@dataclass(frozen=True, slots=True)
class Dealt:
    """A batch: what each shard hears, given as its label, its stage and the control, and the splits to be read."""

    control: list[tuple[int, int, Control]]
    splits: list[SplitWork]


class BatchReader:
    """`parallelism`: tasks to read with."""

    def __init__(self, log: Log, parallelism: int = 2) -> None:
        self._log, self._parallelism = log, parallelism
        self._seen, self._seen_at = Topology(), 0
        self._dealt, self._dealt_at = Topology(), 0
        self._open: dict[StreamKey, PagedSource] = {}

    @staticmethod
    def initial() -> Offset:
        return {"log": 0, "now": 0, "streams": "{}"}

    def latest(self, start: Offset, clock: int, *, streams: bool = True) -> Offset:
        """Where a batch ends that begins at an offset: the same offset if there is nothing to do. Without `streams` it
        takes in the log alone."""
        end = self._log.end()
        for record in self._log.read(self._seen_at, end):
            self._seen.note(record)
        self._seen_at = max(end, self._seen_at)
        now, read = max(int(start["now"]), clock), _read_here(self._seen) if streams else []
        places = json.loads(start["streams"]) if read else {}
        moved = dict(places)
        for key, route in read:
            source, name = self._source(key, route), "/".join(key)
            place = places.get(name) or {"at": source.start(), "ended": False}
            at = source.latest(place["at"], now)
            # A batch of its own tells of the end, since the last rows may be in one that is full.
            ended = place["ended"] or (at == place["at"] and source.ended(at))
            moved[name] = {"at": at, "ended": ended}
        if end <= start["log"] and moved == places:
            return start
        reached = start["streams"] if moved == places else json.dumps(moved)
        return {"log": max(end, start["log"]), "now": now, "streams": reached}

    def _source(self, key: StreamKey, route: Route) -> PagedSource:
        if key not in self._open:
            stream = route.definition
            self._open[key] = open_paged(key[1], stream.schema, stream.options, stream.required)
        return self._open[key]

    def deal(self, start: Offset, end: Offset) -> Dealt:
        """The batch between two offsets."""
        if self._dealt_at > start["log"]:
            self._dealt, self._dealt_at = Topology(), 0
        for record in self._log.read(self._dealt_at, start["log"]):
            self._dealt.note(record)
        groups = self._dealt.labelled()
        heard: dict[int, list[Record]] = {label: [] for label in groups}
        for record in self._log.read(start["log"], end["log"]):
            for label, told in self._dealt.apply(record):
                heard.setdefault(label, []).append(told)
            if isinstance(record, OpenGroup):  # it may be closed again in the same batch
                groups |= dict.fromkeys(record.labels, record)
        self._dealt_at = end["log"]
        moved = start["streams"] != end["streams"]
        splits = list(self._splits(json.loads(start["streams"]), json.loads(end["streams"]))) if moved else []
        given = {label for work in splits for target in work.targets for label in target.labels}
        busy = {groups[label].mill for label, told in heard.items() if told or label in given}
        busy |= self._dealt.adopting()
        control = [
            (label, groups[label].stage, Control(end["log"], end["now"], told))
            for label, told in heard.items()
            if not busy or groups[label].mill in busy
        ]
        return Dealt(control, splits)

    def _splits(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[SplitWork]:
        seq = 0
        for key, route in _read_here(self._dealt):
            source, name = self._source(key, route), "/".join(key)
            if name not in end:
                continue
            place = start.get(name) or {"at": source.start(), "ended": False}
            schema, targets = route.definition.schema, tuple(route.targets)
            columns = tuple(column for column in schema.names if column in route.columns)
            splits = source.splits(place["at"], end[name]["at"], self._parallelism) if end[name] != place else []
            if end[name]["ended"] and not place["ended"]:
                splits = [*splits, EndSplit(schema, columns)]
            for split in splits:
                seq += 1
                yield SplitWork(seq, route.definition, split, columns, targets)


def _read_here(topology: Topology) -> list[tuple[StreamKey, Route]]:
    """The streams that a reader reads: not those that are DataFrames of Spark."""
    routes = topology.routes().items()
    return [(key, route) for key, route in routes if not adopted(route.definition)]
