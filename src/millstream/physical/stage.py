"""The stage host: one stateful processor of Spark for every query there will ever be.

Spark groups the rows of a batch by shard and calls the processor once for each. It restores their order, hands them to
the shard's host, writes back what changed, and puts out what the queries did, one page per query, and a status.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from millstream.algebra.punctuation import Punctuations
from millstream.algebra.schema import TS
from millstream.physical import durable
from millstream.physical.codec import encode
from millstream.physical.packing import Part
from millstream.physical.records import Record
from millstream.physical.worker import settle
from millstream.runtime.engine import NodeStatistics

INPUT = "shard int, seq long, kind int, stream string, head binary, page binary"
OUTPUT = "shard int, query string, kind int, page binary"
CONTROL, PART = 0, 1
"""Kinds of input rows: what every shard hears in every batch, then parts of streams."""
ROWS, PUNCTUATIONS, STATUS = 0, 1, 2
"""Kinds of output rows."""


@dataclass(frozen=True, slots=True)
class Control:
    """What a shard hears at the beginning of a batch: the log up to this position, and the clock."""

    position: int
    now: int
    records: list[Record]


@dataclass(frozen=True, slots=True)
class Status:
    """How a shard fares after a batch."""

    position: int
    asked: frozenset[str]
    state: dict[str, int]
    """Rows held per query."""
    operators: dict[str, NodeStatistics]
    counts: dict[str, tuple[int, int, int]]
    seconds: float
    written: int
    """Bytes of state written."""
    rows_in: int = 0
    ended: frozenset[str] = frozenset()
    """Streams of which nothing more will come."""
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The nodes of each query, by their names in `operators`."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes held per operator with state."""
    newest: dict[str, int] = field(default_factory=dict)
    """The highest timestamp seen per stream."""


class Stage(StatefulProcessor):
    """`job` names the caches; without `cached` every batch reads its state back from the store."""

    def __init__(self, job: str, *, cached: bool = True) -> None:
        self.job, self.cached = job, cached

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._token = handle.getValueState("token", "token string")
        self._values = handle.getMapState("values", "key string", "value binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        label = int(key[0])
        started = time.perf_counter()
        ordered = sorted(rows, key=lambda row: (row.kind, row.seq))
        store = _SparkStore(self._token, self._values)
        shard = durable.take(self.job, label, store, cached=self.cached)
        host = shard.host
        control: Control = pickle.loads(ordered[0].page)
        for record in control.records:
            host.apply(record)
        taken = 0
        if len(ordered) > 1:
            host.reach(control.now)
            for row in ordered[1:]:
                part = Part.from_bytes(row.stream, row.head, row.page)
                taken += part.count
                host.take_part(part)
        host.run()
        made = list(_pages(label, host.take_outputs()))
        asked = frozenset(host.take_asked())
        if host.closed:
            durable.discard(self.job, label, store, shard)
        else:
            durable.keep(self.job, label, store, shard, cached=self.cached)
        yield from made
        status = Status(
            control.position,
            asked,
            host.state_rows(),
            host.statistics(),
            host.counts(),
            time.perf_counter() - started,
            shard.written,
            taken,
            host.ended(),
            host.nodes(),
            host.state_bytes(),
            host.newest(),
        )
        yield Row(shard=label, query="", kind=STATUS, page=pickle.dumps(status))

    def close(self) -> None:
        settle()


def _pages(label: int, outputs: list[tuple[str, pl.DataFrame | Punctuations]]) -> Iterator[Row]:
    """One page of rows and one of punctuations for each query: rows may go first, for what a punctuation excludes does
    not come after it."""
    rows: dict[str, list[pl.DataFrame]] = {}
    told: dict[str, list[Punctuations]] = {}
    for query, element in outputs:
        if isinstance(element, pl.DataFrame):
            rows.setdefault(query, []).append(element)
        elif len(element):
            told.setdefault(query, []).append(element)
    for query, frames in rows.items():
        page = pl.concat(frames, rechunk=False) if len(frames) > 1 else frames[0]
        yield Row(shard=label, query=query, kind=ROWS, page=encode(page.drop(TS)))
    for query, batches in told.items():
        yield Row(shard=label, query=query, kind=PUNCTUATIONS, page=pickle.dumps(Punctuations.concat(batches)))


class _SparkStore:
    """Spark's state store as a store of keys and values."""

    def __init__(self, token: Any, values: Any) -> None:
        self._token, self._values = token, values

    def token(self) -> str | None:
        held = self._token.get()
        return None if held is None else str(held[0])

    def put_token(self, token: str) -> None:
        self._token.update((token,))

    def get(self, key: str) -> bytes:
        return bytes(self._values.getValue((key,))[0])

    def put(self, key: str, value: bytes) -> None:
        self._values.updateValue((key,), (value,))

    def remove(self, key: str) -> None:
        self._values.removeKey((key,))

    def clear(self) -> None:
        self._token.clear()
        self._values.clear()
