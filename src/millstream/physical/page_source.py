"""The source of a Spark job: the control log and all streams that the job reads itself, as pages by shard.

One Python data source feeds a job, so that one offset steers a whole batch: how far the log is read, the clock, and the
place in every stream. A batch that is replayed from its offset is the same batch. The log and the places are looked at
in the reader's process next to the driver; files and generators are read in Spark's tasks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from millstream.algebra.values import encode
from millstream.ingest.paged import PagedSource, Piece, open_paged
from millstream.ingest.paged.pieces import EndPiece
from millstream.logical.catalog import StreamDefinition
from millstream.physical.control_log import ControlLog
from millstream.physical.packing import pack
from millstream.physical.parts import Target
from millstream.physical.post import CONTROL, PART, address
from millstream.physical.records import OpenGroup, Record
from millstream.physical.reports import reporting
from millstream.physical.stage import Control
from millstream.physical.topology import Route, StreamKey, Topology, adopted
from millstream.physical.worker import settle


@dataclass(frozen=True, slots=True)
class PieceWork:
    """A piece of a stream to be read and packed."""

    seq: int
    stream: StreamDefinition
    piece: Piece
    columns: tuple[str, ...]
    targets: tuple[Target, ...]


class Work(InputPartition):
    """What one task does: pass on control, read pieces."""

    def __init__(self, control: list[tuple[int, int, bytes]], pieces: list[PieceWork]) -> None:
        self.control, self.pieces = control, pieces


class PageReader:
    def __init__(self, options: dict[str, str]) -> None:
        self._log = ControlLog(Path(options["log"]))
        self._parallelism = int(options.get("parallelism", "2"))
        self._seen, self._seen_at = Topology(), 0
        self._dealt, self._dealt_at = Topology(), 0
        self._open: dict[StreamKey, PagedSource] = {}

    def initialOffset(self) -> dict[str, Any]:
        return {"log": 0, "now": 0, "streams": "{}"}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ARG002
        with reporting():
            return self._latest(start)

    def _latest(self, start: dict[str, Any]) -> dict[str, Any]:
        end = self._log.end()
        for record in self._log.read(self._seen_at, end):
            self._seen.apply(record)
        self._seen_at = max(end, self._seen_at)
        now = max(int(start["now"]), time.time_ns() // 1000)
        places = json.loads(start["streams"])
        moved = dict(places)
        for key, route in _read_here(self._seen):
            source, name = self._source(key, route), "/".join(key)
            place = places.get(name) or {"at": source.start(), "ended": False}
            at = source.latest(place["at"], now)
            # A batch of its own tells of the end, since the last rows may be in one that is full.
            ended = place["ended"] or (at == place["at"] and source.ended(at))
            moved[name] = {"at": at, "ended": ended}
        if end <= start["log"] and moved == places:
            return start
        return {"log": max(end, start["log"]), "now": now, "streams": json.dumps(moved)}

    def _source(self, key: StreamKey, route: Route) -> PagedSource:
        if key not in self._open:
            stream = route.definition
            self._open[key] = open_paged(key[1], stream.schema, stream.options, stream.required)
        return self._open[key]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Work]:
        with reporting():
            return self._works(start, end)

    def _works(self, start: dict[str, Any], end: dict[str, Any]) -> list[Work]:
        if self._dealt_at > start["log"]:
            self._dealt, self._dealt_at = Topology(), 0
        for record in self._log.read(self._dealt_at, start["log"]):
            self._dealt.apply(record)
        groups = self._dealt.labelled()
        heard: dict[int, list[Record]] = {label: [] for label in groups}
        for record in self._log.read(start["log"], end["log"]):
            for label, told in self._dealt.apply(record):
                heard.setdefault(label, []).append(told)
            if isinstance(record, OpenGroup):  # it may be closed again in the same batch
                groups |= dict.fromkeys(record.labels, record)
        self._dealt_at = end["log"]
        pieces = list(self._pieces(json.loads(start["streams"]), json.loads(end["streams"])))
        given = {label for work in pieces for target in work.targets for label in target.labels}
        busy = {groups[label].mill for label, told in heard.items() if told or label in given}
        busy |= self._dealt.adopting()
        control = [
            (label, groups[label].stage, encode(Control(end["log"], end["now"], told)))
            for label, told in heard.items()
            if not busy or groups[label].mill in busy
        ]
        count = max(1, min(self._parallelism, len(pieces)))
        return [Work(control if task == 0 else [], pieces[task::count]) for task in range(count)]

    def _pieces(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[PieceWork]:
        seq = 0
        for key, route in _read_here(self._dealt):
            source, name = self._source(key, route), "/".join(key)
            if name not in end:
                continue
            place = start.get(name) or {"at": source.start(), "ended": False}
            schema, targets = route.definition.schema, tuple(route.targets)
            columns = tuple(column for column in schema.names if column in route.columns)
            pieces = source.pieces(place["at"], end[name]["at"], self._parallelism) if end[name] != place else []
            if end[name]["ended"] and not place["ended"]:
                pieces = [*pieces, EndPiece(schema, columns)]
            for piece in pieces:
                seq += 1
                yield PieceWork(seq, route.definition, piece, columns, targets)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Work)
        rows: list[tuple[int, int, int, str, bytes, bytes]] = []
        for label, stage, page in partition.control:
            shard, seq = address(label, 0, stage)
            rows.append((shard, seq, CONTROL, "", b"", page))
        for work in partition.pieces:
            with reporting():
                for label, part in pack(work.stream, work.piece, work.columns, work.targets):
                    rows.append((label, work.seq, PART, work.stream.name, *part.to_bytes()))
        if rows:
            columns = zip(*rows, strict=True)
            types = (pa.int32(), pa.int64(), pa.int32(), pa.string(), pa.binary(), pa.binary())
            arrays = [pa.array(list(values), type_) for values, type_ in zip(columns, types, strict=True)]
            settle()
            yield pa.RecordBatch.from_arrays(arrays, names=["shard", "seq", "kind", "stream", "head", "page"])

    def commit(self, end: dict[str, Any]) -> None:
        pass


def _read_here(topology: Topology) -> list[tuple[StreamKey, Route]]:
    """The streams that this source reads: not those that are DataFrames of Spark."""
    routes = topology.routes().items()
    return [(key, route) for key, route in routes if not adopted(route.definition)]
