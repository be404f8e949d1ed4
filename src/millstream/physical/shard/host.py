"""One shard: a query graph with the sources before it, driven by records and pages.

The host holds no operator logic and knows nothing of Spark. It applies what it is handed in order, runs the graph, and
gives out what queries put out and what operators have said to streams. Time is promised by whoever feeds the stream,
for all shards alike: a shard that promised by itself would call a tuple late that another one accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import polars as pl

from millstream.algebra.clock import VirtualClock
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER
from millstream.algebra.upstream import TimeRequest, Upstream
from millstream.algebra.values import value
from millstream.errors import PlanError
from millstream.ingest.source import StreamSource
from millstream.physical.plan.compile import Compiler
from millstream.physical.plan.partial import Partial
from millstream.physical.wire.own_rows import take_share
from millstream.physical.wire.records import (
    CloseGroup,
    Configure,
    Feed,
    OpenGroup,
    Promise,
    Record,
    Send,
    Sending,
    Settings,
    StartQuery,
    StopQuery,
)
from millstream.physical.wire.shard_split import ShardSplit
from millstream.runtime.engine import Graph, NodeStatistics, Sink, Source
from millstream.runtime.engine.nodes import Hear, OperatorNode
from millstream.runtime.join.settings import configure_joins


@value("setup")
@dataclass(slots=True)
class Setup:
    """What a shard has been told to run: enough to build its graph anew."""

    group: int = 0
    labels: tuple[int, ...] = ()
    """The shards of its group."""
    number: int = 0
    """Which of them it is."""
    settings: Settings | None = None
    queries: dict[str, StartQuery] = field(default_factory=dict)


class ShardHost:
    def __init__(self, setup: Setup | None = None) -> None:
        self.setup = Setup()
        self.clock = VirtualClock()
        self.graph = Graph()
        self.tables: dict[str, pl.DataFrame] = {}
        self.compiler = Compiler(self.graph, self._hear, self.tables)
        self.sources: dict[str, StreamSource] = {}
        self.partials: dict[str, dict[str, Partial]] = {}
        """Stream → partial streams made of it."""
        self.promised: dict[str, int] = {}
        self.told: dict[str, int] = {}
        """What operators have heard of that."""
        self.messages: dict[tuple[str, Upstream], None] = {}
        """What operators have said to streams since it was last taken."""
        self.wanted: set[str] = set()
        """Streams read by the job whose time has been asked for before; they tell it in every batch from then on."""
        self.outputs: list[tuple[str, Element]] = []
        self.setup_changed = True
        self.closed = False
        if setup is not None and setup.settings is not None:
            self._belong(setup.group, setup.labels, setup.number)
            self._configure(setup.settings)
            for query in setup.queries.values():
                self._start(query)
            self.setup_changed = False

    # --- records --------------------------------------------------------------------------------------------------

    def apply(self, record: Record) -> None:
        match record:
            case OpenGroup(group=group, labels=labels, settings=settings, number=number):
                self._belong(group, labels, number)
                self._configure(settings)
            case Configure(settings=settings):
                self._configure(settings)
                self.graph.run()
            case CloseGroup():
                self.closed = True
            case StartQuery():
                self._start(record)
            case StopQuery(name=name):
                self._stop(name)
            case Feed(now=now, elements=elements):
                self.reach(now)
                for stream, element in elements:
                    self.compiler.push(stream, element)
                self.graph.run()
            case Promise(now=now, times=times, beat=beat):
                self.reach(now)
                self.promised.update(times)
                if beat:
                    self.graph.heartbeat()
                self.graph.run()
                self._tell_readers()
            case Send(query=str(query), message=message):
                for part in [part for part in self.setup.queries.values() if part.whole == query]:
                    if message.everywhere or part.name == query:
                        self.compiler.send(part.name, message)
                        self.graph.run()
            case Send(message=TimeRequest(beat=True), streams=streams):
                self._promise(streams)
                self.graph.heartbeat()
                self.graph.run()
            case Send(message=TimeRequest(), streams=streams):
                self.wanted.update(streams)
                self.tell_time()

    def _belong(self, group: int, labels: tuple[int, ...], number: int) -> None:
        self.setup.group, self.setup.labels, self.setup.number = group, labels, number
        self.compiler.place = number, len(labels)

    def _configure(self, settings: Settings) -> None:
        self.setup.settings = settings
        self.setup_changed = True
        self.graph.page_rows = settings.page_rows
        self.graph.set_strategy(settings.strategy)
        self.graph.set_ets(settings.ets)
        self._configure_joins()
        self.graph.cut_for_strategy()

    def _configure_joins(self) -> None:
        assert self.setup.settings is not None
        configure_joins((node.operator for node in self.graph.operators.values()), self.setup.settings.joins)

    def _start(self, query: StartQuery) -> None:
        settings = self.setup.settings
        assert settings is not None
        self.setup.queries[query.name] = query
        self.setup_changed = True
        self.tables.update(query.tables)
        deliver = partial(self._deliver, query.name, query.punctuated)
        self.compiler.add(query.name, query.plan, deliver, query.since)
        for stream, name, made in query.partials:
            self.partials.setdefault(stream, {})[name] = made
        for name, definition in query.streams.items():
            if name not in self.sources:
                self.sources[name] = StreamSource(definition, self.clock, settings.page_rows)
        self._configure_joins()
        self.graph.cut_for_strategy()

    def _stop(self, name: str) -> None:
        self.setup.queries.pop(name)
        self.setup_changed = True
        self.compiler.remove(name)
        read = {stream for query in self.setup.queries.values() for stream in query.streams}
        for stream in self.sources.keys() - read:
            del self.sources[stream]
        kept = {made for query in self.setup.queries.values() for _, made, _ in query.partials}
        self.partials = {s: {n: p for n, p in made.items() if n in kept} for s, made in self.partials.items()}

    def _deliver(self, query: str, punctuated: bool, element: Element) -> None:
        if punctuated or not isinstance(element, Punctuations):
            self.outputs.append((query, element))

    def _tell_readers(self) -> None:
        """Time has been promised, perhaps for operators that wait in another stage: hand in their request at the top of
        what is sent there. Where it goes from here is known already."""
        sending = [query.name for query in self.setup.queries.values() if query.sending is not None]
        if not sending:
            return
        known = dict(self.messages)
        for name in sending:
            self.compiler.send(name, TimeRequest())
        self.graph.run()
        self.messages = known

    def sending(self, query: str) -> Sending | None:
        """Where a part of a query sends its output, if it does."""
        held = self.setup.queries.get(query)
        return None if held is None else held.sending

    def _hear(self, stream: str) -> Hear:
        """Takes the messages to a stream, which are noted; in return for a request for time, what it has promised. A
        request that a promise not heard before answers goes no further: who still waits asks again."""

        base, _, _ = stream.partition("~")  # a partial stream has the time of the one it is made of

        def hear(message: Upstream) -> int | None:
            promised = self.promised.get(base) if isinstance(message, TimeRequest) else None
            if promised is None or promised <= self.told.get(stream, NEVER):
                self.messages[base, message] = None
            else:
                self.told[stream] = promised
            return promised

        return hear

    def reach(self, now: int) -> None:
        self.clock.advance(max(0, now - self.clock.now()))

    # --- pages of streams that are read by the job itself -----------------------------------------------------------

    def take_part(self, part: ShardSplit) -> None:
        """Take this shard's part of a split of a stream."""
        if part.now:
            self.reach(part.now)
        source = self.sources.get(part.stream)
        if source is None:
            return
        part = part.judged_by(source)
        taken = take_share(source, part)
        for name, groups in part.partials.items():
            self.compiler.push(name, Page(groups))
        for element in taken.elements:
            if part.share.partials and isinstance(element, Page):
                for name, groups in part.share.groups(element.frame):
                    self.compiler.push(name, Page(groups))
            else:
                self._spread(part.stream, element)
        if (order := source.order()) is not None:
            self._spread(part.stream, order)
        if taken.late.height:
            self.compiler.push(f"{part.stream}__late", Page(taken.late))
        if taken.bad.height:
            self.compiler.push(f"{part.stream}__bad", Page(taken.bad))

    def _promise(self, streams: Iterable[str]) -> None:
        """The sources in this shard promise what they can at this time, as those in all others do."""
        for stream in streams:
            if stream in self.sources and (value := self.sources[stream].ets()) is not None:
                self.promised[stream] = max(value, self.promised.get(stream, NEVER))

    def _spread(self, stream: str, element: Element) -> None:
        """Push an element, and what follows from it for the partial streams made of this one."""
        self.compiler.push(stream, element)
        for name, partial_stream in self.partials.get(stream, {}).items():
            match element:
                case Page():
                    self.compiler.push(name, Page(partial_stream.rows(element.frame)))
                case Punctuations():
                    self.compiler.push(name, partial_stream.pass_on(element))
                case _:
                    raise PlanError("M3091", f"a partial aggregate does not take a {type(element).__name__}")

    def tell_time(self) -> None:
        """Streams that somebody has waited for promise the time they can: he may be waiting again. This is done with
        batches that there are anyway, and spares him the one that would be asked for."""
        if self.wanted and self.graph.on_demand:
            self._promise(self.wanted)
            self.graph.run()
            self._tell_readers()

    # --- what came of it --------------------------------------------------------------------------------------------

    def take_outputs(self) -> list[tuple[str, Element]]:
        taken, self.outputs = self.outputs, []
        return taken

    def take_messages(self) -> tuple[tuple[str, Upstream], ...]:
        """What operators have said to streams since the last call, the same once: stream and message."""
        taken, self.messages = self.messages, {}
        return tuple(taken)

    def state_rows(self) -> dict[str, int]:
        return {name: sum(op.state_rows() for op in self.compiler.operators(name)) for name in self.setup.queries}

    def statistics(self) -> dict[str, NodeStatistics]:
        return self.graph.statistics()

    def nodes(self) -> dict[str, tuple[str, ...]]:
        """The names of each query's nodes in the graph."""
        return {name: self.compiler.nodes(name) for name in self.setup.queries}

    def state_bytes(self) -> dict[str, int]:
        """About how many bytes each operator with state holds."""
        held = {name: node.operator.tables().values() for name, node in self.graph.operators.items()}
        return {name: sum(table.size() for table in tables) for name, tables in held.items() if tables}

    def newest(self) -> dict[str, int]:
        """The highest timestamp seen of each stream read by the job whose tuples bring theirs with them."""
        return {name: newest for name, source in self.sources.items() if (newest := source.newest) is not None}

    def ended(self) -> frozenset[str]:
        return frozenset(name for name, source in self.sources.items() if source.ended)

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """Rows accepted, late and bad, per stream read by the job."""
        return {name: (s.accepted, s.late, s.bad) for name, s in self.sources.items()}

    def _counting(self) -> dict[str, Source | OperatorNode | Sink]:
        return {**self.graph.sources, **self.graph.operators, **self.graph.sinks}

    # --- state ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything but the tables of the operators and the set-up."""
        return {
            "now": self.clock.now(),
            "promised": self.promised,
            "told": self.told,
            "wanted": self.wanted,
            "sources": {name: source.snapshot() for name, source in self.sources.items()},
            "graph": self.graph.snapshot(),
            "counters": {name: replace(node.counters) for name, node in self._counting().items()},
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        """Take back a snapshot; the tables have been restored before."""
        self.reach(values["now"])
        self.promised, self.told = dict(values["promised"]), dict(values["told"])
        self.wanted = set(values["wanted"])
        for name, source in self.sources.items():
            if name in values["sources"]:
                source.restore(values["sources"][name])
        self.graph.restore(values["graph"])
        for name, node in self._counting().items():
            node.counters = replace(values.get("counters", {}).get(name, node.counters))
        self.messages = {}
        self.outputs = []
