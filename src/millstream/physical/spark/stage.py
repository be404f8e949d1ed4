"""The stage of a Spark job: one stateful processor runs all queries, also those added later.

Spark groups the rows of a batch by shard and calls the processor once for each. It decodes them, restores their order,
runs the shard (`shard.batch`), writes back what changed, and emits rows for the driver and for the shards of later
stages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark.sql import Row

from millstream.algebra import values
from millstream.algebra.element import Page
from millstream.algebra.schema import TS
from millstream.collection import freeze_once
from millstream.physical.failure.transport import reporting
from millstream.physical.shard import durable
from millstream.physical.shard.batch import FIRST, Given, Sent, brief_status, full_status, run_batch
from millstream.physical.wire.address import (
    CONTROL,
    PUNCTUATIONS,
    ROWS,
    SENT_PUNCTUATIONS,
    SENT_ROWS,
    SPLIT,
    STATUS,
    address,
)
from millstream.physical.wire.codec import decode, encode
from millstream.physical.wire.shard_split import ShardSplit


class Stage:
    """`job` names the caches; `number` is the stage's among the job's `stages`; `values` is Spark's state. Without
    `cached` every batch reads its state back from there."""

    def __init__(self, job: str, number: int, stages: int, values: Any, *, cached: bool = True) -> None:
        self.job, self.number, self.stages, self.cached = job, number, stages, cached
        self._store = _SparkStore(values)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        label = int(key[0])
        if label < 0:
            yield from map(self._forwarded, rows)
            return
        with reporting():
            yield from self._batch(label, rows)

    def _batch(self, label: int, rows: Iterator[Any]) -> Iterator[Row]:
        started, given = time.perf_counter(), _given(rows)
        shard = durable.take(self.job, label, self._store, cached=self.cached)
        fresh, previous = partial(durable.load, self._store, None), partial(durable.load_previous, self._store)
        made = run_batch(shard.host, given, lambda: fresh().host, previous)
        if shard.host.closed:
            durable.discard(self.job, label, self._store, shard)
        else:
            durable.keep(self.job, label, self._store, shard, cached=self.cached)
        for query, element in made.results:
            if isinstance(element, Page):
                yield self._row(label, query, ROWS, encode(element.frame.drop(TS)))
            else:
                yield self._row(label, query, PUNCTUATIONS, values.encode(element))
        for sent in made.sent:
            yield self._sent(sent)
        seconds = time.perf_counter() - started
        brief = brief_status(shard.host, given.control.position, made, seconds, shard.written)
        yield self._row(label, "", STATUS, values.encode(full_status(shard.host, brief)))

    def close(self) -> None:
        freeze_once()

    # --- rows -------------------------------------------------------------------------------------------------------

    def _row(self, label: int, query: str, kind: int, page: bytes) -> Row:
        """A row for the driver."""
        if self.number + 1 == self.stages:
            return Row(shard=label, query=query, kind=kind, page=page)
        shard, seq = address(label, self.number + 1, self.stages)
        return Row(shard=shard, seq=seq, kind=kind, stream=query, head=b"", page=page)

    def _forwarded(self, row: Any) -> Row:
        """A row of an earlier stage, on its way to a later one or to the driver."""
        if self.number + 1 == self.stages:
            return Row(shard=int(row.seq), query=row.stream, kind=row.kind, page=bytes(row.page))
        shard, seq = address(int(row.seq), self.number + 1, -row.shard)
        return Row(shard=shard, seq=seq, kind=row.kind, stream=row.stream, head=bytes(row.head), page=bytes(row.page))

    def _sent(self, sent: Sent) -> Row:
        """A row for a shard of a later stage."""
        shard, seq = address(sent.label, self.number + 1, sent.stage)
        if isinstance(sent.element, Page):
            kind, page = SENT_ROWS, encode(sent.element.frame)
        else:
            kind, page = SENT_PUNCTUATIONS, values.encode((sent.now, sent.element))
        head = b"" if sent.place == FIRST else values.encode(sent.place)
        return Row(shard=shard, seq=seq, kind=kind, stream=sent.stream, head=head, page=page)


def _given(rows: Iterator[Any]) -> Given:
    """The rows of a batch, decoded and in order."""
    given = Given()
    splits: list[tuple[int, ShardSplit]] = []
    for row in sorted(rows, key=lambda row: (row.kind, row.seq)):
        if row.kind == CONTROL:
            given.control = values.decode(row.page, "a control page")
        elif row.kind == SPLIT:
            splits.append((row.seq, ShardSplit.from_bytes(row.stream, row.head, row.page)))
        else:
            now, element = (0, Page(decode(row.page))) if row.kind == SENT_ROWS else values.decode(row.page)
            place = tuple(values.decode(row.head)) if row.head else FIRST
            given.sent.append(Sent(0, 0, row.stream, now, element, place))
    given.splits += [split for _, split in sorted(splits, key=lambda each: (each[0], each[1].stretch))]
    return given


class _SparkStore:
    """Spark's state store as a key-value store. All values are in one map, since every state variable costs some
    milliseconds in every task."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def get(self, key: str) -> bytes | None:
        held = self._values.getValue((key,))
        return None if held is None else bytes(held[0])

    def put(self, key: str, value: bytes) -> None:
        self._values.updateValue((key,), (value,))

    def remove(self, key: str) -> None:
        self._values.removeKey((key,))

    def clear(self) -> None:
        self._values.clear()
