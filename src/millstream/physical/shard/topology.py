"""The groups of shards in a job, their queries, and the receivers of records and streams, as the control log has them.

The source of the job folds the log into a topology and asks it, record by record, which shards a record concerns. It is
a pure function of the log, so that a replayed batch reaches the same shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.early import Prod
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schedule import Grid, Schedule
from millstream.ingest.paged.wanted import Skipped, unwanted_rows
from millstream.logical.catalog import StreamDefinition
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.plan import EVERYWHERE, Plan
from millstream.physical.plan.placeholders import counted
from millstream.physical.shard.prodding import by_time
from millstream.physical.wire.hashing import shard_of
from millstream.physical.wire.records import (
    CloseGroup,
    Configure,
    Feed,
    Fetch,
    ForgetStream,
    Hold,
    OpenGroup,
    Park,
    Promise,
    Reading,
    Received,
    Record,
    Rekey,
    Reschedule,
    Send,
    Skip,
    StartQuery,
    StopQuery,
    Unpark,
    WriteOnce,
)
from millstream.physical.wire.shard_split import PartialStream, Target

if TYPE_CHECKING:
    from millstream.physical.wire.reading import Log

StreamKey = tuple[str, str]
"""A mill and the name of one of its streams."""


DATAFRAME = "dataframe"
"""The connector of streams that are Spark's DataFrames."""


@dataclass(slots=True)
class Route:
    """A stream that the job reads itself: its definition, the columns that queries need, its reading, and the shards
    that read it."""

    definition: StreamDefinition
    columns: set[str]
    reading: Reading = field(default_factory=Reading)
    targets: list[Target] = field(default_factory=list)
    unwanted: tuple[Pattern, ...] = ()
    """Rows that match one of these patterns are wanted by no reader."""
    grids: tuple[Grid, ...] = ()
    """The marks of time at which queries prod themselves."""


@dataclass(slots=True)
class _Group:
    opened: OpenGroup
    queries: dict[str, StartQuery] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    """The streams that its queries read."""

    def note_reads(self) -> None:
        """Update `reads` after a change of `queries`."""
        self.reads = frozenset(part.stream for query in self.queries.values() for part in scans(query.plan))

    def addressed(self, record: Record) -> list[tuple[int, Record]]:
        """The record for each shard of the group."""
        return [(label, record) for label in self.opened.labels]

    def runs(self, query: str) -> bool:
        """Return whether the group runs a query or a part of it."""
        return any(query in (part.whole, part.name) for part in self.queries.values())

    def partials(self, stream: str) -> tuple[PartialStream, ...]:
        """The partial streams that are made of a stream for this group."""
        keys = self.opened.keys
        found = {
            name: PartialStream(name, partial, None if keys is None else keys.get(name))
            for query in self.queries.values()
            for source, name, partial in query.partials
            if source == stream
        }
        return tuple(found.values())


def is_dataframe(stream: StreamDefinition) -> bool:
    """Return whether a stream is one of Spark's DataFrames."""
    return stream.options.get("connector") == DATAFRAME


class Topology:
    def __init__(self) -> None:
        self.groups: dict[int, _Group] = {}
        self.held: set[str] = set()
        """The mills whose streams are not read on."""
        self.unwanted: dict[StreamKey, tuple[Pattern, ...]] = {}
        """The rows of streams that no reader wants."""
        self.schedules: dict[tuple[str, str], Schedule | None] = {}
        """When queries of mills prod themselves, if that has been altered."""
        self._routes: dict[StreamKey, Route] | None = None

    @classmethod
    def of(cls, log: Log) -> Topology:
        """The topology at the end of a log."""
        made = cls()
        for record in log.read(0, log.end()):
            made.note(record)
        return made

    def plans(self) -> tuple[Plan, ...]:
        """The plans of the queries that run."""
        return tuple(query.plan for group in self.groups.values() for query in group.queries.values())

    def note(self, record: Record) -> None:
        """Apply a record."""
        match record:
            case OpenGroup(group=number):
                self.groups[number] = _Group(record)
            case StartQuery(group=number, name=name):
                group = self.groups[number]
                group.queries[name] = record
                group.note_reads()
                for scan in scans(record.plan):  # the new reader wants all rows
                    self.unwanted.pop((group.opened.mill, scan.id.source), None)
            case Skip(mill=mill, stream=stream, patterns=patterns):
                self.unwanted.pop((mill, stream), None)
                if patterns:
                    self.unwanted[mill, stream] = patterns
            case StopQuery(group=number, name=name):
                stopped = self.groups[number].queries.pop(name)
                self.groups[number].note_reads()
                mill = self.groups[number].opened.mill
                if not any(group.runs(stopped.whole) for group in self._of(mill)):
                    self.schedules.pop((mill, stopped.whole), None)
            case Reschedule(mill=mill, query=name, schedule=schedule):
                self.schedules[mill, name] = schedule
            case Rekey(group=number, keys=keys):
                self.groups[number].opened = replace(self.groups[number].opened, keys=keys)
            case CloseGroup(group=number):
                del self.groups[number]
            case Hold(mill=mill, on=on):
                (self.held.add if on else self.held.discard)(mill)
                return
            case _:
                return
        self._routes = None

    def apply(self, record: Record) -> list[tuple[int, Record]]:
        """Apply a record; return the labels it concerns, each with the record for that shard."""
        closed = self.groups.get(record.group) if isinstance(record, CloseGroup) else None
        self.note(record)
        match record:
            case OpenGroup():
                return [(label, replace(record, number=place)) for place, label in enumerate(record.labels)]
            case StartQuery(group=number) | StopQuery(group=number) | Park(group=number):
                return self.groups[number].addressed(record)
            case Fetch(group=number) | WriteOnce(group=number) | Received(group=number) if number in self.groups:
                return self.groups[number].addressed(record)
            case Unpark(group=group, number=number):
                return [(self.groups[group].opened.labels[number], record)]
            case CloseGroup() if closed is not None:
                return closed.addressed(record)
            case (
                Configure(mill=mill)
                | Reschedule(mill=mill)
                | Promise(mill=mill)
                | Send(mill=mill, query=None)
                | ForgetStream(mill=mill)
            ):
                return [pair for group in self._of(mill) for pair in group.addressed(record)]
            case Hold(mill=mill):
                return [pair for group in self._of(mill) for pair in group.addressed(record)]
            case Send(mill=mill, query=str(query)):
                return [pair for group in self._of(mill) if group.runs(query) for pair in group.addressed(record)]
            case Feed(mill=mill):
                wanted = self._wanted(record) if self.unwanted else record
                return [pair for group in self._of(mill) for pair in _divided(wanted, group)]
        return []

    def _wanted(self, feed: Feed) -> Feed:
        """Fed elements without the rows that no reader wants."""
        kept: list[tuple[str, Element]] = []
        skipped: dict[str, Skipped] = {}
        for stream, element in feed.elements:
            unwanted = self.unwanted.get((feed.mill, stream), ())
            if not unwanted or not isinstance(element, Page) or not element:
                kept.append((stream, element))
                continue
            match = unwanted_rows(element.frame, unwanted)
            count = int(match.sum())
            skipped[stream] = skipped.get(stream, Skipped()) + Skipped(element.tuples, count)
            if count < element.tuples:
                kept.append((stream, Page(element.frame.filter(pl.Series(~match))) if count else element))
        return replace(feed, elements=tuple(kept), skipped=skipped) if skipped else feed

    def _of(self, mill: str) -> list[_Group]:
        return [group for group in self.groups.values() if group.opened.mill == mill]

    def labelled(self) -> dict[int, OpenGroup]:
        """The group of every shard, by label."""
        return {label: group.opened for group in self.groups.values() for label in group.opened.labels}

    def reading_dataframes(self) -> set[str]:
        """The mills that read Spark's DataFrames, which may have rows in any batch."""
        return {mill for (mill, _), route in self.routes().items() if is_dataframe(route.definition)}

    def routes(self) -> dict[StreamKey, Route]:
        """The streams that the job reads for some query."""
        if self._routes is None:
            self._routes = self._new_routes()
        return self._routes

    def _new_routes(self) -> dict[StreamKey, Route]:
        made: dict[StreamKey, Route] = {}
        for group in self.groups.values():
            keys, reads = group.opened.keys, group.reads
            found: dict[str, StreamDefinition] = {}
            readings: dict[str, Reading] = {}
            for query in group.queries.values():
                found |= query.streams
                readings |= query.readings
            for name, definition in found.items():
                reading = readings.get(name, Reading())
                route = made.setdefault((group.opened.mill, name), Route(definition, set(), reading))
                late, partials = definition.id.late in reads, group.partials(name)
                hashed = None if late or keys is None else keys.get(name) or None
                raw = name in reads or late or not partials
                if raw:
                    route.columns |= _columns(definition, group)
                route.columns.update(hashed or (), *(partial.partial.columns for partial in partials))
                counts = hashed is None and not late and not partials
                needed = counted((query.plan for query in group.queries.values()), name) if counts else None
                route.targets.append(Target(group.opened.labels, hashed, raw, partials, needed))
        for key, route in made.items():
            route.unwanted = self.unwanted.get(key, ())
            route.grids = self._grids(*key)
            route.columns = route.columns or {route.definition.schema.names[0]}  # a page without columns has no rows
        return made

    def _grids(self, mill: str, stream: str) -> tuple[Grid, ...]:
        """The marks at which queries that read a stream prod themselves, by its time."""
        altered = {query: schedule for (owner, query), schedule in self.schedules.items() if owner == mill}
        queries = (query for group in self._of(mill) for query in group.queries.values())
        found = {schedule.grid for _, _, schedule in by_time(queries, altered, stream)}
        return tuple(sorted(found))


def scans(plan: Plan) -> list[Scan]:
    return [part for part in plan.walk() if isinstance(part, Scan)]


def _columns(definition: StreamDefinition, group: _Group) -> set[str]:
    """The columns of a stream that the queries of a group need, and the columns its source reads."""
    names = set(definition.schema.names)
    if definition.id.late in group.reads:
        return names
    needed = set(definition.required)
    for query in group.queries.values():
        for top in _tops(query.plan, definition.name):
            needed |= names if top is None else top
    return needed & names


def _tops(plan: Plan, stream: str) -> Iterator[set[str] | None]:
    """For each scan of the stream, the columns read by the first projection above it and the selections in between;
    None if there is no such projection."""
    chain = [plan]
    while isinstance(chain[-1], Project | Select):
        chain.append(chain[-1].input)
    bottom = chain[-1]
    if isinstance(bottom, Scan) and bottom.stream == stream:
        yield _read(chain)
    for part in bottom.inputs:
        yield from _tops(part, stream)


def _read(chain: list[Plan]) -> set[str] | None:
    read: set[str] = set()
    for part in reversed(chain):
        if isinstance(part, Project):
            return read.union(*(item.columns() for _, item in part.items))
        if isinstance(part, Select):
            read |= part.predicate.columns()
    return None


def _divided(feed: Feed, group: _Group) -> Iterator[tuple[int, Feed]]:
    """Each shard's share of fed elements: its rows, and all punctuations."""
    labels, keys, reads = group.opened.labels, group.opened.keys, group.reads
    shares: list[list[tuple[str, Element]]] = [[] for _ in labels]
    for stream, element in feed.elements:
        if stream not in reads and not (isinstance(element, Prod) and group.opened.stage == 0):
            continue  # all shards of the first stage count prods, in the same order
        if len(labels) == 1 or not isinstance(element, Page) or (keys or {})[stream] == EVERYWHERE:
            for share in shares:
                share.append((stream, element))
            continue
        shards = shard_of(element.frame, (keys or {})[stream], len(labels))
        for number, share in enumerate(shares):
            part = Page(element.frame.filter(pl.Series(shards == number)))
            if part:
                share.append((stream, part))
    for label, share in zip(labels, shares, strict=True):
        yield label, Feed(feed.mill, feed.now, tuple(share), {} if label != labels[0] else feed.skipped)
