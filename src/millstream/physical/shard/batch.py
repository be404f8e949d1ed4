"""One batch of one shard: its input, its results, and its report.

Spark's stage (`spark.stage`) and the in-process job exchange the same objects with a shard. Spark's rows carry them as
bytes; within one process they are passed on directly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.upstream import Upstream
from millstream.algebra.values import value
from millstream.errors import MillstreamError, OperatorError
from millstream.physical.failure.description import FAULTS
from millstream.physical.failure.failing_row import events, find_failing_row
from millstream.physical.shard.host import ShardHost
from millstream.physical.wire.hashing import shard_of
from millstream.physical.wire.reading import Control
from millstream.physical.wire.records import Feed, Record, Send, Sending
from millstream.physical.wire.shard_split import ShardSplit
from millstream.runtime.engine import NodeStatistics


@dataclass(frozen=True, slots=True)
class Sent:
    """An element that a shard sends to the shard `label` of a later stage, as part of a stream; `now` is the sender's
    clock, of punctuations only."""

    stage: int
    label: int
    stream: str
    now: int
    element: Element


@dataclass(slots=True)
class Given:
    """The input of a shard in a batch. Without `control` it has only rows of DataFrames, or elements that other shards
    sent."""

    control: Control = field(default_factory=lambda: Control(-1, 0, []))
    splits: list[ShardSplit] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    def records(self) -> list[Record]:
        """The control records, with the elements that other shards sent as one record: tuples before punctuations.
        Messages to queries come last: the senders have applied them too, and their answers are among those elements."""
        if not self.sent:
            return self.control.records
        in_order = sorted(self.sent, key=lambda sent: not isinstance(sent.element, Page))
        elements = tuple((sent.stream, sent.element) for sent in in_order)
        feed = Feed("", max(sent.now for sent in self.sent), elements)
        messages = [record for record in self.control.records if isinstance(record, Send) and record.query is not None]
        return [*(record for record in self.control.records if record not in messages), feed, *messages]


@dataclass(frozen=True, slots=True)
class Made:
    """The results of a batch: elements for the driver by query, elements for other shards, and the number of rows read
    from each stream."""

    results: list[tuple[str, Element]]
    sent: list[Sent]
    rows_in: dict[str, int]


@value("status")
@dataclass(frozen=True, slots=True)
class Status:
    """A shard's report after a batch. A brief one lacks what only progress and metrics show."""

    position: int
    group: int
    """The group that the shard belongs to."""
    messages: tuple[tuple[str, Upstream], ...]
    """Messages of operators to streams."""
    rows_in: dict[str, int]
    """Rows read in the batch, per stream."""
    ended: frozenset[str]
    """Streams that have ended."""
    seconds: float = 0.0
    written: int = 0
    """Bytes of state written."""
    state: dict[str, int] = field(default_factory=dict)
    """Rows held per query."""
    operators: dict[str, NodeStatistics] = field(default_factory=dict)
    counts: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The nodes of each query, by their names in `operators`."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes held per operator with state."""
    newest: dict[str, int] = field(default_factory=dict)
    """The highest timestamp seen per stream."""


def run_batch(host: ShardHost, given: Given, fresh: Callable[[], ShardHost] | None = None) -> Made:
    """Run a batch. `fresh` returns the shard as it was before the batch, to find the row that an operator fails on."""
    records = given.records()
    rows_in: Counter[str] = Counter()
    try:
        for record in records:
            host.apply(record)
        if given.splits:
            host.reach(given.control.now)
            for split in given.splits:
                rows_in[split.stream] += split.count
                host.take_split(split)
        host.graph.run()
        host.promise_time()
    except FAULTS as error:
        if fresh is None or (isinstance(error, MillstreamError) and not isinstance(error, OperatorError)):
            raise
        raise find_failing_row(fresh, list(events(records, given.control.now, given.splits)), error) from error
    results, sent = _outputs(host)
    return Made(results, sent, dict(rows_in))


def brief_status(host: ShardHost, position: int, made: Made, seconds: float, written: int) -> Status:
    """The part of the report that the driver needs after every batch."""
    return Status(position, host.setup.group, host.take_messages(), made.rows_in, host.ended(), seconds, written)


def full_status(host: ShardHost, brief: Status) -> Status:
    """The report with everything that progress and metrics show; it makes operators file their state."""
    return replace(
        brief,
        state=host.state_rows(),
        operators=host.statistics(),
        counts=host.counts(),
        nodes=host.nodes(),
        sizes=host.state_bytes(),
        newest=host.newest(),
    )


def _outputs(host: ShardHost) -> tuple[list[tuple[str, Element]], list[Sent]]:
    """Collect one page of rows and one batch of punctuations per query. Rows may come first: none that a punctuation
    excludes is emitted after it."""
    rows: defaultdict[str, list[pl.DataFrame]] = defaultdict(list)
    punctuations: defaultdict[str, list[Punctuations]] = defaultdict(list)
    for query, element in host.take_outputs():
        match element:
            case Page():
                rows[query].append(element.frame)
            case Punctuations() if element:
                punctuations[query].append(element)
    elements: list[tuple[str, Page | Punctuations]] = []
    elements += [(query, Page(pl.concat(frames, rechunk=False))) for query, frames in rows.items()]
    elements += [(query, Punctuations.concat(batches)) for query, batches in punctuations.items()]
    results: list[tuple[str, Element]] = []
    sent: list[Sent] = []
    for query, element in elements:
        sending = host.sending(query)
        if sending is not None:
            sent += _addressed(host, sending, element)
        elif isinstance(element, Page) or len(element):
            results.append((query, element))
    return results, sent


def _addressed(host: ShardHost, sending: Sending, element: Element) -> Iterator[Sent]:
    """Address an element to shards of the next stage: rows by the hash of their key, punctuations to all."""
    stream = f"{sending.stream}.{host.setup.number}"
    if not isinstance(element, Page):
        for label in sending.labels:
            yield Sent(sending.stage, label, stream, host.clock.now(), element)
        return
    if sending.key is None:
        yield Sent(sending.stage, sending.labels[0], stream, 0, element)
        return
    shards = shard_of(element.frame, sending.key, len(sending.labels))
    for number, label in enumerate(sending.labels):
        part = Page(element.frame.filter(pl.Series(shards == number)))
        if part:
            yield Sent(sending.stage, label, stream, 0, part)
