"""One batch of one shard: its input, its results, and its report.

Spark's stage (`spark.stage`) and the in-process job exchange the same objects with a shard. Spark's rows carry them as
bytes; within one process they are passed on directly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.early import Prod
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.shed import Shed
from millstream.algebra.stream_id import StreamId
from millstream.algebra.upstream import Upstream
from millstream.algebra.values import value
from millstream.ingest.losses import Losses
from millstream.ingest.paged.wanted import Skipped
from millstream.physical.failure.failing_row import events
from millstream.physical.failure.isolation import Isolation
from millstream.physical.shard.host import ShardHost
from millstream.physical.shard.parking import Parked, park
from millstream.physical.shard.waiting import demands_of, lags_of
from millstream.physical.wire.hashing import shard_of
from millstream.physical.wire.partitions import united
from millstream.physical.wire.reading import Control
from millstream.physical.wire.records import Feed, Record, Send, Sending, StartQuery
from millstream.physical.wire.shard_split import ShardSplit
from millstream.runtime.engine import NodeStatistics, readings
from millstream.runtime.engine.demand import Levels
from millstream.runtime.engine.readings import ByStem

Place = tuple[int, int]
"""Where an element is in a batch: the number of prods before it in all streams, and of prods in its own stream since
the last of them."""
FIRST: Place = (0, 0)


@dataclass(frozen=True, slots=True)
class Sent:
    """An element that a shard sends to the shard `label` of a later stage, as part of a stream; `now` is the sender's
    clock, of punctuations only. Prods keep their place among what is sent, and so do the elements between them."""

    stage: int
    label: int
    stream: str
    now: int
    element: Element
    place: Place = FIRST


@dataclass(slots=True)
class Given:
    """The input of a shard in a batch. Without `control` it has only rows of DataFrames, or elements that other shards
    sent."""

    control: Control = field(default_factory=lambda: Control(-1, 0, []))
    splits: list[ShardSplit] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    def records(self) -> list[Record]:
        """The control records, then the elements that other shards sent as one record, or one between two prods: tuples
        before punctuations, and these before a prod. Feedback comes before them: the senders act on it in this batch
        too, and an operator that has not dropped a group would emit it without the tuples that they have omitted.
        Requests to all parts of a query come last: the answers of the senders are among those elements."""
        if not self.sent:
            return self.control.records
        now = max(sent.now for sent in self.sent)
        feeds = []
        for place, found in groupby(sorted(self.sent, key=_order), lambda sent: sent.place):
            feeds.append(Feed("", now, tuple((sent.stream, sent.element) for sent in found), epoch=place[0]))
        first: list[Record] = []
        last: list[Record] = []
        for record in self.control.records:
            asks_all = isinstance(record, Send) and record.query is not None and record.message.everywhere
            (last if asks_all else first).append(record)
        return [*first, *feeds, *last]


def _order(sent: Sent) -> tuple[Place, int, str]:
    """The order in which a shard takes what others send: notices of shed tuples before the punctuations that they held
    back, copies of a prod one after the other."""
    if isinstance(sent.element, Prod):
        return sent.place, 3, sent.element.number
    return sent.place, 0 if isinstance(sent.element, Page) else 1 if isinstance(sent.element, Shed) else 2, ""


@dataclass(frozen=True, slots=True)
class Made:
    """The results of a batch: elements for the driver by query, elements for other shards, and the number of rows read
    from each stream."""

    results: list[tuple[str, Element]]
    sent: list[Sent]
    rows_in: dict[str, int]
    places: str = ""
    """The places in all streams at the end of the batch, if the driver needs them."""
    failed: dict[str, str] = field(default_factory=dict)
    """The queries, or parts of queries, that have failed, each with its error as text."""
    parked: Parked = ()
    """What operators of failed queries held."""


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
    """Rows read in the batch, per stream; late and bad rows count."""
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
    points: dict[str, int] = field(default_factory=dict)
    """The point from which each query reads, and under an empty name that of a query that starts next."""
    sources: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    """Sources that the driver has asked for, or that have no readers any more: the number of the reading, and the
    state, of which only the first shard of a group reports more than the counts."""
    places: str = ""
    """The places in all streams, as JSON; empty without `sources`."""
    demands: dict[str, tuple[int, Levels]] = field(default_factory=dict)
    """What the operators wait for: the time, and the streams behind it (`Demand`), by operator."""
    lags: dict[str, tuple[int, Levels]] = field(default_factory=dict)
    """What the time of the parts that other stages read depends on (`Lag`), by part."""
    losses: dict[str, Losses] = field(default_factory=dict)
    """Rows taken in the batch, per stream that the job reads, and what is known of the late and bad ones."""
    failed: dict[str, str] = field(default_factory=dict)
    """The queries, or parts of queries, that have failed in the batch, each with its error as text."""
    finished: frozenset[str] = frozenset()
    """Queries, or parts of queries, whose output is complete."""
    parked: Parked = ()
    """What operators of queries that failed before held."""
    pending: int = 0
    """Tuples that wait for work that operators limit per batch: another batch has to follow."""
    disclaimed: dict[str, tuple[Pattern, ...]] = field(default_factory=dict)
    """The tuples that all readers of a stream in this shard have disclaimed; streams between stages among them."""
    skipped: dict[str, Skipped] = field(default_factory=dict)
    """What the sources of streams have left out because no reader wants it."""
    reports: ByStem = field(default_factory=dict)
    """What operators report after a batch (`control/reports`)."""
    summaries: ByStem = field(default_factory=dict)
    """What progress and metrics show of them."""


@np.errstate(all="ignore")  # an operator computes inf - inf and the like as IEEE 754 says, without a warning
def run_batch(
    host: ShardHost,
    given: Given,
    fresh: Callable[[], ShardHost] | None = None,
    previous: Callable[[], ShardHost | None] | None = None,
) -> Made:
    """Run a batch. A query that fails is taken out, and the others go on. `fresh` returns the shard as it was before
    the batch, to find the row that an operator fails on; `previous` as it was before the last batch."""
    records, splits = given.records(), given.splits
    parked = park(records, host, previous)
    host.feeding.epoch = 0
    isolation = Isolation(host, fresh, lambda: list(events(records, given.control.now, splits)))
    rows_in: Counter[str] = Counter()
    for record in records:
        isolation.run(partial(host.apply, record), starts=record.name if isinstance(record, StartQuery) else None)
    if splits:
        host.reach_batch(given.control.now)
        splits = united(splits, host.sources)
        for split in splits:
            rows_in[split.stream] += split.count + (0 if split.bad is None else split.bad.height)
            isolation.run(partial(host.take_split, split), reads=split.stream)
    isolation.run(host.graph.run)
    isolation.run(host.finish_batch, again=True)
    results, sent = _outputs(host)
    return Made(results, sent, dict(rows_in), given.control.places, isolation.failed, parked)


def brief_status(host: ShardHost, position: int, made: Made, seconds: float, written: int) -> Status:
    """The part of the report that the driver needs after every batch."""
    sources = host.take_reported()
    return Status(
        position,
        host.setup.group,
        host.promises.take_messages(),
        made.rows_in,
        host.ended(),
        seconds,
        written,
        sources=sources,
        places=made.places if sources else "",
        demands=demands_of(host),
        lags=lags_of(host),
        losses={name: found for name, source in host.sources.items() if (found := source.take_losses()).known},
        failed=made.failed,
        finished=frozenset(name for name in host.setup.running if host.compiler.ended(name)),
        parked=made.parked,
        pending=host.graph.pending(),
        disclaimed=host.disclaimed(),
        skipped=dict(host.intake.skipped),
        reports=readings.reports(host.graph),
    )


def full_status(host: ShardHost, brief: Status) -> Status:
    """The report with everything that progress and metrics show; it makes operators file their state."""
    return replace(
        brief,
        state=host.state_rows(),
        operators=host.statistics(),
        counts={name: (s.accepted, s.late, s.bad) for name, s in host.sources.items()},
        nodes=host.nodes(),
        sizes=_sizes(host),
        newest={name: newest for name, source in host.sources.items() if (newest := source.newest) is not None},
        points=host.points(),
        summaries=readings.summaries(host.graph),
    )


def _sizes(host: ShardHost) -> dict[str, int]:
    held = {name: node.operator.tables().values() for name, node in host.graph.operators.items()}
    return {name: sum(table.size() for table in tables) for name, tables in held.items() if tables}


def _outputs(host: ShardHost) -> tuple[list[tuple[str, Element]], list[Sent]]:
    """Collect one page of rows and one batch of punctuations per query, or between two prods that it sends on. Rows may
    come first: none that a punctuation excludes is emitted after it."""
    rows: defaultdict[tuple[str, Place], list[pl.DataFrame]] = defaultdict(list)
    punctuations: defaultdict[tuple[str, Place], list[Punctuations]] = defaultdict(list)
    elements: list[tuple[str, Place, Element]] = []
    places: dict[str, Place] = {}
    for query, element, epoch in host.take_outputs():
        known = places.get(query, FIRST)
        if known[0] < epoch and host.sending(query) is not None:
            # A prod that an operator has held back comes behind what was sent since; others begin their epoch.
            known = places[query] = (epoch, 0)
        match element:
            case Page():
                rows[query, known].append(element.frame)
            case Punctuations() if element:
                punctuations[query, known].append(element)
            case Shed():
                elements.append((query, known, element))
            case Prod():
                at_once = (query, known) not in rows and (query, known) not in punctuations and not known[1]
                elements.append((query, (epoch, -1) if at_once and epoch else known, element))
                places[query] = (epoch, known[1] + (0 if at_once and epoch else 1))
    elements += [(query, place, Page(pl.concat(frames, rechunk=False))) for (query, place), frames in rows.items()]
    elements += [(query, place, Punctuations.concat(found)) for (query, place), found in punctuations.items()]
    results: list[tuple[str, Element]] = []
    sent: list[Sent] = []
    for query, place, element in elements:
        sending = host.sending(query)
        if sending is not None:
            sent += [replace(each, place=place) for each in _addressed(host, sending, element)]
        elif isinstance(element, Page) or (isinstance(element, Punctuations) and len(element)):
            results.append((query, element))
    return results, sent


def _addressed(host: ShardHost, sending: Sending, element: Element) -> Iterator[Sent]:
    """Address an element to shards of the next stage: rows by the hash of their key, also those of a prod; punctuations
    and prods to all."""
    stream, now = str(replace(StreamId.of(sending.stream), shard=host.setup.number)), host.clock.now()
    frame = element.frame if isinstance(element, Page) else element.rows if isinstance(element, Prod) else None
    shards = None
    if frame is not None and sending.key is not None:
        shards = shard_of(frame, sending.key, len(sending.labels))
    for number, label in enumerate(sending.labels):
        part = frame if frame is None or shards is None else frame.filter(pl.Series(shards == number))
        match element:
            case Page():
                if part is not None and part.height:
                    yield Sent(sending.stage, label, stream, 0, Page(part))
            case Prod():
                yield Sent(sending.stage, label, stream, now, element.with_rows(part))
            case _:
                yield Sent(sending.stage, label, stream, now, element)
        if sending.key is None and isinstance(element, Page):
            return
