"""The stage host: one stateful processor of Spark for every query there will ever be.

Spark groups the rows of a batch by shard and calls the processor once for each. It restores their order, hands them to
the shard's host, writes back what changed, and puts out what the queries did, one page per query, and a status. What a
part of a query puts out for a later stage goes to the shards there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from pyspark.sql import Row

from millstream.algebra import values
from millstream.algebra.punctuation import Punctuations
from millstream.algebra.schema import TS
from millstream.algebra.values import value
from millstream.errors import MillstreamError, OperatorError
from millstream.physical import durable
from millstream.physical.blame import blame, events
from millstream.physical.codec import decode, encode
from millstream.physical.failures import FAULTS
from millstream.physical.hashing import shard_of
from millstream.physical.host import ShardHost
from millstream.physical.parts import Part
from millstream.physical.post import CONTROL, PART, PUNCTUATIONS, ROWS, SENT_PUNCTUATIONS, SENT_ROWS, STATUS, address
from millstream.physical.records import Element, Feed, Record, RequestPunctuation, Sending
from millstream.physical.reports import reporting
from millstream.physical.worker import settle
from millstream.runtime.engine import NodeStatistics

TOKEN = "token"


@value("control")
@dataclass(frozen=True, slots=True)
class Control:
    """What a shard hears at the beginning of a batch: the log up to this position, and the clock."""

    position: int
    now: int
    records: list[Record]


@value("status")
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
    rows_in: dict[str, int] = field(default_factory=dict)
    """Rows taken in the batch, per stream."""
    ended: frozenset[str] = frozenset()
    """Streams of which nothing more will come."""
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The nodes of each query, by their names in `operators`."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes held per operator with state."""
    newest: dict[str, int] = field(default_factory=dict)
    """The highest timestamp seen per stream."""
    group: int = 0
    """The group that the shard belongs to."""


class Stage:
    """`job` names the caches; `number` is the stage's among the job's `stages`; `values` is Spark's state;
    without `cached` every batch reads its state back from there."""

    def __init__(self, job: str, number: int, stages: int, values: Any, *, cached: bool = True) -> None:
        self.job, self.number, self.stages, self.cached = job, number, stages, cached
        self._values = values

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        label = int(key[0])
        if label < 0:
            yield from (self._passed(row) for row in rows)
            return
        with reporting():
            yield from self._batch(label, rows)

    def _batch(self, label: int, rows: Iterator[Any]) -> Iterator[Row]:
        started = time.perf_counter()
        ordered = sorted(rows, key=lambda row: (row.kind, row.seq))
        store = _SparkStore(self._values)
        shard = durable.take(self.job, label, store, cached=self.cached)
        host = shard.host
        control = Control(-1, 0, [])  # none comes with a batch that has only rows of DataFrames
        if ordered[0].kind == CONTROL:
            control = values.decode(ordered.pop(0).page, "a control page")
        sent = [row for row in ordered if row.kind > PART]
        if sent:
            ordered = ordered[: -len(sent)]
            control.records[:] = _with_sent(control.records, _sent(sent))
        try:
            taken = _feed(host, control, ordered)
        except FAULTS as error:
            raise _explained(error, store, control, ordered) from error
        made = list(self._pages(label, host))
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
            host.setup.group,
        )
        yield self._row(label, "", STATUS, values.encode(status))

    def close(self) -> None:
        settle()

    # --- rows -------------------------------------------------------------------------------------------------------

    def _row(self, label: int, query: str, kind: int, page: bytes) -> Row:
        """A row for the driver."""
        if self.number + 1 == self.stages:
            return Row(shard=label, query=query, kind=kind, page=page)
        shard, seq = address(label, self.number + 1, self.stages)
        return Row(shard=shard, seq=seq, kind=kind, stream=query, head=b"", page=page)

    def _passed(self, row: Any) -> Row:
        """A row for somebody further on."""
        if self.number + 1 == self.stages:
            return Row(shard=int(row.seq), query=row.stream, kind=row.kind, page=bytes(row.page))
        shard, seq = address(int(row.seq), self.number + 1, -row.shard)
        return Row(shard=shard, seq=seq, kind=row.kind, stream=row.stream, head=bytes(row.head), page=bytes(row.page))

    def _pages(self, label: int, host: ShardHost) -> Iterator[Row]:
        """One page of rows and one of punctuations for each query: rows may go first, for what a punctuation excludes
        does not come after it."""
        rows: dict[str, list[pl.DataFrame]] = {}
        told: dict[str, list[Punctuations]] = {}
        for query, element in host.take_outputs():
            if isinstance(element, pl.DataFrame):
                rows.setdefault(query, []).append(element)
            elif element:
                told.setdefault(query, []).append(element)
        for query, frames in rows.items():
            page = pl.concat(frames, rechunk=False) if len(frames) > 1 else frames[0]
            sending = host.sending(query)
            if sending is None:
                yield self._row(label, query, ROWS, encode(page.drop(TS)))
            else:
                yield from self._send_rows(sending, host.setup.labels.index(label), page)
        for query, batches in told.items():
            marks = Punctuations.concat(batches)
            sending = host.sending(query)
            if sending is not None:
                number, page_of_marks = host.setup.labels.index(label), values.encode((host.clock.now(), marks))
                for to in sending.labels:
                    yield self._sent(sending, to, number, SENT_PUNCTUATIONS, page_of_marks)
            elif len(marks):
                yield self._row(label, query, PUNCTUATIONS, values.encode(marks))

    def _send_rows(self, sending: Sending, number: int, page: pl.DataFrame) -> Iterator[Row]:
        if sending.key is None:
            yield self._sent(sending, sending.labels[0], number, SENT_ROWS, encode(page))
            return
        shards = shard_of(page, sending.key, len(sending.labels))
        for place, to in enumerate(sending.labels):
            part = page.filter(pl.Series(shards == place))
            if part.height:
                yield self._sent(sending, to, number, SENT_ROWS, encode(part))

    def _sent(self, sending: Sending, to: int, number: int, kind: int, page: bytes) -> Row:
        shard, seq = address(to, self.number + 1, sending.stage)
        return Row(shard=shard, seq=seq, kind=kind, stream=f"{sending.stream}.{number}", head=b"", page=page)


def _sent(rows: list[Any]) -> Feed:
    """What other shards have sent, to be processed together: tuples before punctuations."""
    elements: list[tuple[str, Element]] = []
    now = 0
    for row in rows:
        if row.kind == SENT_ROWS:
            elements.append((row.stream, decode(row.page)))
        else:
            at, marks = values.decode(row.page, "a page of punctuations")
            now = max(now, at)
            elements.append((row.stream, marks))
    return Feed("", now, tuple(elements))


def _with_sent(records: list[Record], sent: Feed) -> list[Record]:
    """What a shard hears, with what others have sent. These have heard the same requests for punctuation, and their
    answers are among what they sent: one is put to this shard when it knows them."""
    requests = [record for record in records if isinstance(record, RequestPunctuation)]
    return [*(record for record in records if not isinstance(record, RequestPunctuation)), sent, *requests]


def _feed(host: ShardHost, control: Control, rows: list[Any]) -> dict[str, int]:
    """Hand a batch to a shard and run it; returns how many rows of each stream it has taken."""
    for record in control.records:
        host.apply(record)
    taken: dict[str, int] = {}
    if rows:
        host.reach(control.now)
        for row in rows:
            part = Part.from_bytes(row.stream, row.head, row.page)
            taken[part.stream] = taken.get(part.stream, 0) + part.count
            host.take_part(part)
    host.run()
    host.tell_time()
    return taken


def _explained(error: BaseException, store: durable.Store, control: Control, rows: list[Any]) -> MillstreamError:
    """The error of a batch with the row that it is about; the store has the shard as it was before."""
    if isinstance(error, MillstreamError) and not isinstance(error, OperatorError):
        return error
    parts = [Part.from_bytes(row.stream, row.head, row.page) for row in rows]

    def fresh() -> ShardHost:
        return ShardHost() if store.token() is None else durable.load(store, None).host

    return blame(fresh, list(events(control.records, control.now, parts)), error)


class _SparkStore:
    """Spark's state store as a store of keys and values. All is in one map, since every state variable costs some
    milliseconds in every task."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def token(self) -> str | None:
        held = self._values.getValue((TOKEN,))
        return None if held is None else bytes(held[0]).decode()

    def put_token(self, token: str) -> None:
        self.put(TOKEN, token.encode())

    def get(self, key: str) -> bytes:
        return bytes(self._values.getValue((key,))[0])

    def put(self, key: str, value: bytes) -> None:
        self._values.updateValue((key,), (value,))

    def remove(self, key: str) -> None:
        self._values.removeKey((key,))

    def clear(self) -> None:
        self._values.clear()
