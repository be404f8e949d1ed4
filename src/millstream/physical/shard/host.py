"""One shard: a query graph with the sources before it, driven by records and pages.

The host holds no operator logic and knows nothing of Spark. It applies records and pages in order, runs the graph, and
returns the output of queries and the messages of operators to streams. The feeder of a stream promises time, to all
shards alike: a shard that promised time by itself would treat a tuple as late that another shard accepts.
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
from millstream.logical.catalog import BAD, LATE
from millstream.physical.plan.compile import Compiler
from millstream.physical.plan.partial import Partial
from millstream.physical.wire.own_rows import take_own_rows
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
    """The configuration and queries of a shard: enough to rebuild its graph."""

    group: int = 0
    labels: tuple[int, ...] = ()
    """The shards of its group."""
    number: int = 0
    """The position of this shard among them."""
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
        """The time that each stream has promised."""
        self.answered: dict[str, int] = {}
        """The last promise that each stream has returned to a request for time."""
        self.messages: dict[tuple[str, Upstream], None] = {}
        """Messages of operators to streams since the last `take_messages`."""
        self.wanted: set[str] = set()
        """Streams read by the job whose time was once requested; they promise it in every batch from then on."""
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
                self._send_time()
            case Send(query=str(query), message=message):
                for part in self.setup.queries.values():
                    if part.whole == query and (message.everywhere or part.name == query):
                        self.compiler.send(part.name, message)
                        self.graph.run()
            case Send(message=TimeRequest(beat=True), streams=streams):
                self._promise(streams)
                self.graph.heartbeat()
                self.graph.run()
            case Send(message=TimeRequest(), streams=streams):
                self.wanted.update(streams)
                self.promise_time()

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

    def _send_time(self) -> None:
        """Send promised time to later stages: an operator there may wait for it. A time request at the top of what is
        sent makes operators emit it; the driver knows already which streams it asks."""
        sending = [query.name for query in self.setup.queries.values() if query.sending is not None]
        if not sending:
            return
        known = dict(self.messages)
        for name in sending:
            self.compiler.send(name, TimeRequest())
        self.graph.run()
        self.messages = known

    def sending(self, query: str) -> Sending | None:
        """The destination of a query's output in a later stage; None: the driver."""
        held = self.setup.queries.get(query)
        return None if held is None else held.sending

    def _hear(self, stream: str) -> Hear:
        """Return the receiver of messages to a stream. It notes them for the driver, and answers a request for time
        with the stream's promise. It does not note a request that a new promise answers: an operator that still waits
        asks again."""

        base, _, _ = stream.partition("~")  # a partial stream has the time of the one it is made of

        def hear(message: Upstream) -> int | None:
            promised = self.promised.get(base) if isinstance(message, TimeRequest) else None
            if promised is None or promised <= self.answered.get(stream, NEVER):
                self.messages[base, message] = None
            else:
                self.answered[stream] = promised
            return promised

        return hear

    def reach(self, now: int) -> None:
        """Advance the clock to a time, unless it is past it."""
        self.clock.advance(max(0, now - self.clock.now()))

    # --- pages of streams that are read by the job itself -----------------------------------------------------------

    def take_split(self, split: ShardSplit) -> None:
        """Process this shard's share of a split of a stream."""
        if split.now:
            self.reach(split.now)
        source = self.sources.get(split.stream)
        if source is None:
            return
        split = split.judged_by(source)
        taken = take_own_rows(source, split)
        for name, groups in split.partials.items():
            self.compiler.push(name, Page(groups))
        for element in taken.elements:
            if split.own.partials and isinstance(element, Page):
                for name, groups in split.own.groups(element.frame):
                    self.compiler.push(name, Page(groups))
            else:
                self._push(split.stream, element)
        if (order := source.order()) is not None:
            self._push(split.stream, order)
        if taken.late.height:
            self.compiler.push(split.stream + LATE, Page(taken.late))
        if taken.bad.height:
            self.compiler.push(split.stream + BAD, Page(taken.bad))

    def _promise(self, streams: Iterable[str]) -> None:
        """Let the sources of this shard promise the time they can, as those of all other shards do."""
        for stream in streams:
            if stream in self.sources and (value := self.sources[stream].ets()) is not None:
                self.promised[stream] = max(value, self.promised.get(stream, NEVER))

    def _push(self, stream: str, element: Element) -> None:
        """Push an element to a stream, and its derived element to each partial stream made of it."""
        self.compiler.push(stream, element)
        for name, partial_stream in self.partials.get(stream, {}).items():
            match element:
                case Page():
                    self.compiler.push(name, Page(partial_stream.rows(element.frame)))
                case Punctuations():
                    self.compiler.push(name, partial_stream.pass_on(element))
                case _:
                    raise PlanError("M3091", f"a partial aggregate does not take a {type(element).__name__}")

    def promise_time(self) -> None:
        """Let wanted streams promise the time they can: an operator may be waiting again. Done in every batch, this
        avoids the extra batch that the operator would request."""
        if self.wanted and self.graph.on_demand:
            self._promise(self.wanted)
            self.graph.run()
            self._send_time()

    # --- results ----------------------------------------------------------------------------------------------------

    def take_outputs(self) -> list[tuple[str, Element]]:
        taken, self.outputs = self.outputs, []
        return taken

    def take_messages(self) -> tuple[tuple[str, Upstream], ...]:
        """Return the distinct messages of operators to streams since the last call: stream and message."""
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
        """Approximate size of each operator with state."""
        held = {name: node.operator.tables().values() for name, node in self.graph.operators.items()}
        return {name: sum(table.size() for table in tables) for name, tables in held.items() if tables}

    def newest(self) -> dict[str, int]:
        """The highest timestamp of each stream that the job reads and whose tuples carry their own."""
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
        """All state but the tables of the operators and the set-up."""
        return {
            "now": self.clock.now(),
            "promised": self.promised,
            "told": self.answered,
            "wanted": self.wanted,
            "sources": {name: source.snapshot() for name, source in self.sources.items()},
            "graph": self.graph.snapshot(),
            "counters": {name: replace(node.counters) for name, node in self._counting().items()},
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore a snapshot; the tables have been restored before."""
        self.reach(values["now"])
        self.promised, self.answered = dict(values["promised"]), dict(values["told"])
        self.wanted = set(values["wanted"])
        for name, source in self.sources.items():
            if name in values["sources"]:
                source.restore(values["sources"][name])
        self.graph.restore(values["graph"])
        for name, node in self._counting().items():
            node.counters = replace(values.get("counters", {}).get(name, node.counters))
        self.messages = {}
        self.outputs = []
