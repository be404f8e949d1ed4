"""One batch of one shard: what it is given, what it makes of it, and its report.

Spark's stage (`stage`) and the in-process job hand a shard the same things and take the same things from it. Between
shards of one process they travel as they are; Spark's rows carry them as bytes.
"""

from __future__ import annotations

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
    """An element that a shard sends to the shard `label` of a later stage, as part of a stream, at the time `now`."""

    stage: int
    label: int
    stream: str
    now: int
    element: Element


@dataclass(slots=True)
class Given:
    """What a shard is given in a batch. Without `control` it brings only rows of DataFrames, or what others sent."""

    control: Control = field(default_factory=lambda: Control(-1, 0, []))
    parts: list[ShardSplit] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    def records(self) -> list[Record]:
        """What the shard hears, with what others have sent: tuples before punctuations. The senders have heard the same
        messages to queries, and their answers are among what they sent: messages are put to this shard last."""
        if not self.sent:
            return self.control.records
        tuples = [(sent.stream, sent.element) for sent in self.sent if isinstance(sent.element, Page)]
        told = [(sent.stream, sent.element) for sent in self.sent if not isinstance(sent.element, Page)]
        feed = Feed("", max(sent.now for sent in self.sent), (*tuples, *told))
        messages = [record for record in self.control.records if isinstance(record, Send) and record.query is not None]
        return [*(record for record in self.control.records if record not in messages), feed, *messages]


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a batch: elements for the driver by query, elements for other shards, and how many rows of each
    stream were taken."""

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
    """What operators have said to streams."""
    rows_in: dict[str, int]
    """Rows taken in the batch, per stream."""
    ended: frozenset[str]
    """Streams of which nothing more will come."""
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
    """Hand a batch to a shard. `fresh` gives the shard as it was before, to look for the row that an operator fails
    on."""
    records = given.records()
    taken: dict[str, int] = {}
    try:
        for record in records:
            host.apply(record)
        if given.parts:
            host.reach(given.control.now)
            for part in given.parts:
                taken[part.stream] = taken.get(part.stream, 0) + part.count
                host.take_part(part)
        host.graph.run()
        host.tell_time()
    except FAULTS as error:
        if fresh is None or (isinstance(error, MillstreamError) and not isinstance(error, OperatorError)):
            raise
        raise find_failing_row(fresh, list(events(records, given.control.now, given.parts)), error) from error
    results, sent = _outputs(host)
    return Made(results, sent, taken)


def brief_status(host: ShardHost, position: int, made: Made, seconds: float, written: int) -> Status:
    """What the driver has to know of every batch."""
    return Status(position, host.setup.group, host.take_messages(), made.rows_in, host.ended(), seconds, written)


def full_status(host: ShardHost, brief: Status) -> Status:
    """The report with everything that progress and metrics show; asking for it makes operators file their state."""
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
    """One page of rows and one of punctuations for each query: rows may go first, for what a punctuation excludes does
    not come after it."""
    rows: dict[str, list[pl.DataFrame]] = {}
    told: dict[str, list[Punctuations]] = {}
    for query, element in host.take_outputs():
        match element:
            case Page():
                rows.setdefault(query, []).append(element.frame)
            case Punctuations() if element:
                told.setdefault(query, []).append(element)
    results: list[tuple[str, Element]] = []
    sent: list[Sent] = []
    for query, frames in rows.items():
        page = pl.concat(frames, rechunk=False) if len(frames) > 1 else frames[0]
        sending = host.sending(query)
        if sending is None:
            results.append((query, Page(page)))
        else:
            sent += _spread(host, sending, page)
    for query, batches in told.items():
        punctuations = Punctuations.concat(batches)
        sending = host.sending(query)
        if sending is not None:
            stream, now = _stream(host, sending), host.clock.now()
            sent += [Sent(sending.stage, to, stream, now, punctuations) for to in sending.labels]
        elif len(punctuations):
            results.append((query, punctuations))
    return results, sent


def _stream(host: ShardHost, sending: Sending) -> str:
    """The name under which this shard's part of a stream is read in the next stage."""
    return f"{sending.stream}.{host.setup.number}"


def _spread(host: ShardHost, sending: Sending, page: pl.DataFrame) -> Iterator[Sent]:
    stream = _stream(host, sending)
    if sending.key is None:
        yield Sent(sending.stage, sending.labels[0], stream, 0, Page(page))
        return
    shards = shard_of(page, sending.key, len(sending.labels))
    for place, to in enumerate(sending.labels):
        part = page.filter(pl.Series(shards == place))
        if part.height:
            yield Sent(sending.stage, to, stream, 0, Page(part))
