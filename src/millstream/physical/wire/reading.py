"""The batches of a job. An offset is a position in the control log, the time, and the place in every stream.

Two offsets determine a batch, so that a replay from the same offsets is the same batch. Only `latest` reads the clock
and looks for new input. Spark calls a reader next to the driver (`spark.page_source`); a job in one process calls it
directly. Rows are read and packed where the splits are sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schedule import Grid
from millstream.algebra.stream_id import PlaceId, StreamId
from millstream.algebra.values import value
from millstream.ingest.paged import PagedSource, Split, open_paged
from millstream.ingest.paged.files.prods import stretches
from millstream.ingest.paged.split import EndSplit, SplitRows
from millstream.logical.catalog import StreamDefinition
from millstream.physical.failure.description import FAULTS, source_failure
from millstream.physical.failure.transport import as_text, read_error
from millstream.physical.shard.topology import Route, StreamKey, Topology, is_dataframe
from millstream.physical.wire.packing import pack
from millstream.physical.wire.records import CloseGroup, Hold, OpenGroup, Record, StopQuery
from millstream.physical.wire.shard_split import ShardSplit, Target

Offset = dict[str, Any]


class Log(Protocol):
    """A control log, as readers see it."""

    def end(self) -> int: ...
    def read(self, start: int, end: int) -> Iterator[Record]: ...


@value("control")
@dataclass(frozen=True, slots=True)
class Control:
    """The beginning of a shard's batch: the records of the log up to a position, and the time. `places`: the places in
    all streams as JSON, if shards may report the sources of streams."""

    position: int
    now: int
    records: list[Record]
    places: str = ""


@dataclass(frozen=True, slots=True)
class SplitWork:
    """A split of a stream to read and pack."""

    seq: int
    stream: StreamDefinition
    split: Split
    columns: tuple[str, ...]
    targets: tuple[Target, ...]
    unwanted: tuple[Pattern, ...] = ()
    grids: tuple[Grid, ...] = ()

    def packed(self) -> Iterator[tuple[int, ShardSplit]]:
        """Read the split: each shard's share of it, by label; of one with prods, each shard's share of every stretch
        between them, in order."""
        try:
            cut = stretches(self.split)
        except FAULTS:
            cut = [(self.split, ())]  # reading fails again, and is reported
        done = 0
        for stretch, prods in cut:
            last = 0
            given = pack(self.stream, stretch, self.columns, self.targets, unwanted=self.unwanted, grids=self.grids)
            for label, share in given:
                last, said = share.stretch, prods if share.stretch == 0 else ()
                yield label, replace(share, prods=said, stretch=done + last) if done or said else share
            done += last + 1


@dataclass(frozen=True, slots=True)
class FailedSplit:
    """A split of a stream whose source has failed, with the error as text."""

    error: str
    rows: int | None = 0

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:  # noqa: ARG002
        raise read_error(self.error)


@dataclass(frozen=True, slots=True)
class Dealt:
    """A batch: label, stage and control of each shard that takes part, and the splits to read."""

    control: list[tuple[int, int, Control]]
    splits: list[SplitWork]


class BatchReader:
    """`parallelism`: number of tasks that read splits."""

    def __init__(self, log: Log, parallelism: int) -> None:
        self._log, self._parallelism = log, parallelism
        self._latest, self._latest_at = Topology(), 0
        self._dealt, self._dealt_at = Topology(), 0
        self._open: dict[PlaceId, PagedSource] = {}

    @staticmethod
    def initial() -> Offset:
        return {"log": 0, "now": 0, "streams": "{}"}

    def latest(self, start: Offset, clock: int, *, streams: bool = True) -> Offset:
        """Return the end of the batch that begins at an offset; the same offset if there is nothing to do. Without
        `streams` the batch covers the log alone."""
        end = self._log.end()
        for record in self._log.read(self._latest_at, end):
            self._latest.note(record)
        self._latest_at = max(end, self._latest_at)
        now, read = max(int(start["now"]), clock), _read_here(self._latest) if streams else []
        places = json.loads(start["streams"]) if read else {}
        moved: dict[str, Any] = {}
        for stream, route in read:
            key = PlaceId(*stream, route.reading.number)
            name = str(key)
            if key.mill in self._latest.held:
                moved |= {name: places[name]} if name in places else {}
                continue
            place = places.get(name) or route.reading.place
            try:
                moved[name] = self._moved(key, route, place, now)
            except FAULTS as error:  # its shards learn it in the next batch, and its readers fail there
                text = self._failed(key, error)
                moved[name] = {"at": None, "ended": False, "failed": text, **(place or {})}
        advanced = any(places.get(name) != place for name, place in moved.items())
        if end <= start["log"] and not advanced:
            return start
        return {"log": max(end, start["log"]), "now": now, "streams": json.dumps(moved) if read else start["streams"]}

    def _moved(self, key: PlaceId, route: Route, place: Any, now: int) -> dict[str, Any]:
        """The place in a stream at the end of the next batch."""
        source = self._source(key, route)
        place = _begun(place, source)
        at = source.latest(place["at"], now)
        # The end is a batch of its own, since the last rows may be in a full batch.
        return {"at": at, "ended": place["ended"] or (at == place["at"] and source.ended(at))}

    def _failed(self, key: PlaceId, error: BaseException) -> str:
        """Forget a source that has failed, so that it is opened anew; return the error as text."""
        self._open.pop(key, None)
        return as_text(source_failure(key.stream, error))

    def _source(self, key: PlaceId, route: Route) -> PagedSource:
        if key not in self._open:
            self._open = {known: source for known, source in self._open.items() if known[:2] != key[:2]}
            stream = route.definition
            self._open[key] = open_paged(StreamId.of(key.stream).base, stream.schema, stream.options, stream.required)
        return self._open[key]

    def deal(self, start: Offset, end: Offset) -> Dealt:
        """The batch between two offsets."""
        if self._dealt_at > start["log"]:
            self._dealt, self._dealt_at = Topology(), 0
        for record in self._log.read(self._dealt_at, start["log"]):
            self._dealt.note(record)
        groups = self._dealt.labelled()
        records: dict[int, list[Record]] = {label: [] for label in groups}
        for record in self._log.read(start["log"], end["log"]):
            for label, addressed in self._dealt.apply(record):
                records.setdefault(label, []).append(addressed)
            if isinstance(record, OpenGroup):  # it may be closed again in the same batch
                groups |= dict.fromkeys(record.labels, record)
        self._dealt_at = end["log"]
        moved = start["streams"] != end["streams"]
        places = json.loads(start["streams"]), json.loads(end["streams"])
        splits = list(self._splits(*places, end["now"])) if moved else []
        reading = {label for work in splits for target in work.targets for label in target.labels}
        busy = {groups[label].mill for label, own in records.items() if own or label in reading}
        busy |= self._dealt.reading_dataframes()
        stood = places[0] | places[1] if _reported(records) else {}
        told = json.dumps(stood) if stood else ""
        control = [
            (label, groups[label].stage, Control(end["log"], end["now"], own, told))
            for label, own in records.items()
            if not busy or groups[label].mill in busy
        ]
        return Dealt(control, splits)

    def _splits(self, start: dict[str, Any], end: dict[str, Any], now: int) -> Iterator[SplitWork]:
        seq = 0
        for stream, route in _read_here(self._dealt):
            key = PlaceId(*stream, route.reading.number)
            name = str(key)
            if name not in end:
                continue
            schema, targets = route.definition.schema, tuple(route.targets)
            columns = tuple(column for column in schema.names if column in route.columns)
            try:
                place = start.get(name) or route.reading.place
                splits = self._of_stream(key, route, place, end[name], columns, now)
            except FAULTS as error:
                splits = [FailedSplit(self._failed(key, error))]
            for split in splits:
                seq += 1
                yield SplitWork(seq, route.definition, split, columns, targets, route.unwanted, route.grids)

    def _of_stream(
        self,
        key: PlaceId,
        route: Route,
        place: Any,
        end: dict[str, Any],
        columns: tuple[str, ...],
        now: int,
    ) -> list[Split]:
        """The splits of a stream between two places; None: its start."""
        if "failed" in end:
            if not place or "failed" not in place:  # a batch that is run again finds what has been mended meanwhile
                self._moved(key, route, place, now)
            return []
        source = self._source(key, route)
        place = _begun(place, source)
        splits = source.splits(place["at"], end["at"], self._parallelism) if end != place else []
        if end["ended"] and not place["ended"]:
            splits = [*splits, EndSplit(route.definition.schema, columns)]
        return splits


def _begun(place: dict[str, Any] | None, source: PagedSource) -> dict[str, Any]:
    """A place in a stream; None, or one of a source that could not be opened: its start."""
    return place if place and place["at"] is not None else {"at": source.start(), "ended": False}


def _reported(records: dict[int, list[Record]]) -> bool:
    """Return whether shards may report the sources of streams."""
    return any(isinstance(record, Hold | StopQuery | CloseGroup) for own in records.values() for record in own)


def _read_here(topology: Topology) -> list[tuple[StreamKey, Route]]:
    """The streams that a reader reads itself: all but Spark's DataFrames."""
    routes = topology.routes().items()
    return [(key, route) for key, route in routes if not is_dataframe(route.definition)]
