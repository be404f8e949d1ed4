"""One shard: a query graph with the sources before it, driven by records and pages.

The host holds no operator logic and knows nothing of Spark. It applies records and pages in order, runs the graph, and
returns the output of queries and the messages of operators to streams (`promises`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from millstream.algebra.clock import VirtualClock
from millstream.algebra.early import Prod
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER
from millstream.algebra.shed import Shed
from millstream.algebra.upstream import TimeRequest
from millstream.ingest.source import StreamSource
from millstream.logical.early import emits_early
from millstream.logical.nodes.scan import Scan
from millstream.physical.plan.compile import Compiler
from millstream.physical.shard.feeding import Feeding
from millstream.physical.shard.intake import Intake
from millstream.physical.shard.parcel import unpark
from millstream.physical.shard.promises import Promises
from millstream.physical.shard.setup import Setup
from millstream.physical.shard.topology import scans
from millstream.physical.wire.records import (
    CloseGroup,
    Configure,
    Feed,
    Fetch,
    ForgetStream,
    Hold,
    OpenGroup,
    Promise,
    Received,
    Record,
    Reschedule,
    Send,
    Sending,
    Settings,
    StartQuery,
    StopQuery,
    Unpark,
    WriteOnce,
)
from millstream.physical.wire.shard_split import ShardSplit
from millstream.runtime.engine import Graph, NodeStatistics, Sink, Source
from millstream.runtime.engine.breaks import set_schedule
from millstream.runtime.engine.disclaimed import disclaimed
from millstream.runtime.engine.guarding import repeat, retire
from millstream.runtime.engine.nodes import OperatorNode
from millstream.runtime.engine.responding import set_switches
from millstream.runtime.join.settings import configure_joins
from millstream.runtime.operator.capabilities import AwaitsShards
from millstream.strategies import Schedule
from millstream.switches import Switches


class ShardHost:
    def __init__(self, setup: Setup | None = None) -> None:
        self.setup = Setup()
        self.clock = VirtualClock()
        self.graph = Graph()
        self.tables: dict[str, pl.DataFrame] = {}
        self.compiler = Compiler(self.graph, lambda stream: self.promises.hear(stream), self.tables)
        self.feeding = Feeding(self.graph, self.compiler, self.setup)
        self.intake = Intake(self.compiler.push, self.feeding.marks, self.feeding.prod, self.feeding.take)
        self.sources = self.feeding.sources = self.intake.sources
        self.promises = Promises(self.sources)
        self.outputs: list[tuple[str, Element, int]] = []
        """What queries have emitted, each with the number of prods before it in the batch."""
        self.inputs = 0
        """How often it has received elements or time: where a query that starts now reads from."""
        self.reported: dict[str, tuple[int, dict[str, Any]]] = {}
        """Sources of streams to report to the driver: the number of the reading, and the state."""
        self.parcels: dict[str, tuple[int, bytes]] = {}
        """What parts hold when they start, with the number of the parking, until the batch after their start."""
        self.setup_changed, self.closed = True, False
        if setup is not None and setup.settings is not None:
            self._belong(setup.group, setup.labels, setup.number)
            self._configure(setup.settings)
            self.setup.failed, self.setup.schedules = set(setup.failed), dict(setup.schedules)
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
            case Reschedule(query=query, schedule=schedule):
                self.setup.schedules[query] = schedule
                self.setup_changed = True
            case CloseGroup():
                self.closed = True
            case StartQuery():
                readers = self.graph.readers()
                self._start(replace(record, since=self._since(record), closed={}))
                parking, parcel = self.parcels.get(record.name, (-1, b""))
                if record.parking == parking:
                    unpark(self, record.name, parcel)
                    return
                self.parcels.pop(record.name, None)
                reached = {**record.reached, **{name: source.reached for name, source in self.sources.items()}}
                closed = {**record.closed, **{name: source.closed for name, source in self.sources.items()}}
                self.compiler.reach(record.name, lambda stream: reached.get(stream, NEVER), closed.get, readers)
            case Unpark(name=name, parking=number, parcel=parcel):
                self.parcels[name] = number, parcel
            case Hold(streams=streams):
                self._report(streams)
            case Fetch(number=number, tables=tables):
                self.compiler.tables.fetch(number, tables)
            case WriteOnce(table=table, program=program, rows=rows):
                self.compiler.tables.write_once(table, program, rows)
            case Received():
                self.inputs += self._agree(record)
                self.graph.run()
            case ForgetStream(name=name):
                self.promises.forget(name)
            case StopQuery(name=name):
                self._stop(name)
            case Feed(now=now, elements=elements, skipped=skipped, epoch=epoch):
                self.inputs += 1
                self.intake.note_skipped({s: c for s, c in skipped.items() if self.compiler.reads(s)})
                self.reach(now)
                self.feeding.take(elements, epoch)
                self.graph.run()
            case Promise(now=now, times=times, beat=beat):
                self.reach(now)
                new = self.promises.accept(times, self.compiler.reads)
                self.inputs += beat or new
                if beat:
                    self.graph.heartbeat()
                self.graph.run()
            case Send(query=str(query), message=message):
                for part in self.setup.running.values():
                    if part.name == query or (message.everywhere and part.whole == query):
                        self.compiler.send(part.name, message)
                        self.graph.run()
            case Send(message=TimeRequest(beat=True), streams=streams):
                self.inputs += self.promises.give(streams)
                self.graph.heartbeat()
                self.graph.run()
            case Send(message=TimeRequest(), streams=streams):
                self.promises.want(streams)
                self.inputs += self.promises.give(streams)
                self.graph.run()

    def _agree(self, record: Received) -> bool:
        """Announce punctuation to an operator that awaits all shards, or emit what has waited there. Return whether
        there is such an operator: its query may have stopped."""
        node = self.graph.operators.get(record.operator)
        if node is None or not isinstance(node.operator, AwaitsShards):
            return False
        if not record.by_all:
            node.operator.announce(record.patterns)
        elif agreed := node.operator.agree(record.patterns):
            node.buffer.append(agreed)
        return True

    def _belong(self, group: int, labels: tuple[int, ...], number: int) -> None:
        self.setup.group, self.setup.labels, self.setup.number = group, labels, number
        self.compiler.place = number, len(labels)

    def _configure(self, settings: Settings) -> None:
        self.setup.settings = settings
        self.setup_changed = True
        self.graph.page_rows = settings.page_rows
        self.graph.set_ets(settings.ets)
        self._configure_joins()
        self._schedule()

    def _schedule(self) -> None:
        """Give the operators of all queries their strategies, breaks and switches."""
        settings = self.setup.settings
        assert settings is not None
        owners = self.compiler.owners({query.name: query.whole for query in self.setup.running.values()})
        set_schedule(self.graph, Schedule.parse(settings.strategy, settings.breaks), owners)
        set_switches(self.graph, Switches.parse(settings.exploit, settings.propagate), owners)

    def _configure_joins(self) -> None:
        assert self.setup.settings is not None
        configure_joins((node.operator for node in self.graph.operators.values()), self.setup.settings.joins)

    def _since(self, query: StartQuery) -> int:
        """The point from which a query reads. Streams between stages belong to one query: there is one point."""
        if query.shared is not None and query.shared in self.setup.running:
            return self.setup.queries[query.shared].since
        between = any(isinstance(part, Scan) and part.id.exchanged for part in query.plan.walk())
        return 0 if between else self.inputs

    def _start(self, query: StartQuery) -> None:
        settings = self.setup.settings
        assert settings is not None
        self.setup.queries[query.name] = query
        self.setup_changed = True
        self.tables.update(query.tables)
        for stream, name, made in query.partials:
            self.intake.partials.setdefault(stream, {})[name] = made
        for name, definition in query.streams.items():
            if name not in self.sources:
                self.sources[name] = source = StreamSource(definition, self.clock, settings.page_rows)
                reading = query.readings.get(name)
                if reading is not None and reading.state is not None:
                    counts = reading.state["counts"] if self.setup.number == 0 else (0, 0, 0)
                    source.restore({**reading.state, "counts": counts})
        if query.name not in self.setup.failed:
            deliver = partial(self._deliver, query.name, query.punctuated)
            self.compiler.add(query.name, query.plan, deliver, query.since)
            self._configure_joins()
            self._schedule()

    def fail(self, names: Iterable[str]) -> None:
        """Remove the operators of these queries, and what they have emitted. Their streams are judged on, as in the
        shards where the queries have not failed, until the driver stops the queries everywhere."""
        failed = [*names]
        if not failed:
            return
        for name in failed:
            self.setup.failed.add(name)
            self.compiler.remove(name)
        self.setup_changed = True
        self.outputs = [output for output in self.outputs if output[0] not in self.setup.failed]
        self._schedule()

    def owners(self, node: str) -> list[str]:
        """The queries that have a node of the graph."""
        return [name for name, nodes in self.nodes().items() if node in nodes]

    def readers(self, stream: str) -> list[str]:
        """The queries that read a stream, one of its companions, or a partial stream made of it."""
        return [
            name
            for name, query in self.setup.running.items()
            if any(stream in (part.stream, part.id.source) for part in scans(query.plan))
        ]

    def _stop(self, name: str) -> None:
        stopped = self.setup.queries.pop(name)
        self.setup_changed = True
        if not any(query.whole == stopped.whole for query in self.setup.queries.values()):
            self.setup.schedules.pop(stopped.whole, None)
        if name in self.setup.failed:
            self.setup.failed.discard(name)
        else:
            self.compiler.remove(name)
            repeat(self.graph)
            self._schedule()
        read = {stream for query in self.setup.queries.values() for stream in query.streams}
        unread = self.sources.keys() - read
        self._report(unread, stopped)
        for stream in unread:
            del self.sources[stream]
        self.intake.keep_partials({made for query in self.setup.queries.values() for _, made, _ in query.partials})
        self.promises.keep(self.compiler.reads)
        self.intake.skipped = {s: count for s, count in self.intake.skipped.items() if self.compiler.reads(s)}

    def _report(self, streams: Iterable[str], *stopped: StartQuery) -> None:
        """Report the sources of these streams to the driver. The first shard has the state that all have alike."""
        numbers = {
            name: reading.number
            for query in (*self.setup.queries.values(), *stopped)
            for name, reading in query.readings.items()
        }
        for stream in streams:
            if stream in self.sources and stream in numbers:
                state = self.sources[stream].snapshot()
                own = state if self.setup.number == 0 else {"counts": state["counts"]}
                self.reported[stream] = numbers[stream], own

    def _deliver(self, query: str, punctuated: bool, element: Element) -> None:
        if isinstance(element, Shed) and self.sending(query) is None:
            return
        if isinstance(element, Prod) and self.sending(query) is None:
            if element.rows is None or not element.concerns(query) or not emits_early(self.setup.queries[query].plan):
                return
            element = Page(element.rows)
        if punctuated or not isinstance(element, Punctuations):
            self.outputs.append((query, element, self.feeding.epoch))

    def sending(self, query: str) -> Sending | None:
        """The destination of a query's output in a later stage; None: the driver."""
        held = self.setup.queries.get(query)
        return None if held is None else held.sending

    def reach_batch(self, now: int) -> None:
        """Advance the clock to the time of a batch, unless the mill has a clock of its own."""
        if self.setup.settings is None or self.setup.settings.wall:
            self.reach(now)

    def reach(self, now: int) -> None:
        """Advance the clock to a time, unless it is past it."""
        self.clock.reach(now)

    # --- pages of streams that are read by the job itself -----------------------------------------------------------

    def take_split(self, split: ShardSplit) -> None:
        """Process this shard's share of a split of a stream."""
        self.inputs += 1
        if split.now:
            self.reach(split.now)
        self.intake.take(split)

    def finish_batch(self) -> None:
        """Let wanted streams promise the clock: an operator may be waiting again, and would request it in another
        batch. Then give all operators, here and in later stages, the time promised so far: what they hold does not
        depend on which of them asked. Work that operators limit per batch is done before: then all feedback of the
        batch has arrived."""
        self.graph.work()
        promises = self.promises
        if self.graph.on_demand and promises.wanted:
            self.inputs += promises.give(promises.wanted)
            self.graph.run()
        if self.graph.on_demand and promises.promised:
            for stream, source in self.compiler.sources():
                if (time := promises.promised.get(stream.whole)) is not None:
                    self.graph.promise(source, time)
            self.graph.spread_time()
        retire(self.graph)

    # --- results ----------------------------------------------------------------------------------------------------

    def take_outputs(self) -> list[tuple[str, Element, int]]:
        taken, self.outputs = self.outputs, []
        return taken

    def disclaimed(self) -> dict[str, tuple[Pattern, ...]]:
        """The tuples that all readers of a source of the graph have disclaimed, by the source's stream."""
        found = {str(stream): disclaimed(source) for stream, source in self.compiler.sources()}
        return {stream: patterns for stream, patterns in found.items() if patterns}

    def take_reported(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Return the sources to report since the last call."""
        taken, self.reported = self.reported, {}
        return taken

    def state_rows(self) -> dict[str, int]:
        held = {name: sum(op.state_rows() for op in self.compiler.operators(name)) for name in self.setup.running}
        return dict.fromkeys(self.setup.queries, 0) | held

    def statistics(self) -> dict[str, NodeStatistics]:
        return self.graph.statistics()

    def nodes(self) -> dict[str, tuple[str, ...]]:
        """The names of each query's nodes in the graph."""
        return {name: self.compiler.nodes(name) for name in self.setup.running}

    def ended(self) -> frozenset[str]:
        return frozenset(name for name, source in self.sources.items() if source.ended)

    def points(self) -> dict[str, int]:
        """The point from which each query reads, and under an empty name that of a query that starts now."""
        return {**{name: query.since for name, query in self.setup.queries.items()}, "": self.inputs}

    def _counting(self) -> dict[str, Source | OperatorNode | Sink]:
        return {**self.graph.sources, **self.graph.operators, **self.graph.sinks}

    # --- state ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All state but the tables of the operators and the set-up."""
        return {
            "now": self.clock.now(),
            **self.promises.snapshot(),
            "inputs": self.inputs,
            "parcels": self.parcels,
            "sources": {name: source.snapshot() for name, source in self.sources.items()},
            "skipped": self.intake.skipped,
            "graph": self.graph.snapshot(),
            "counters": {name: replace(node.counters) for name, node in self._counting().items()},
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore a snapshot; the tables have been restored before."""
        self.reach(values["now"])
        self.promises.restore(values)
        self.inputs, self.parcels = values.get("inputs", 1), dict(values.get("parcels", {}))
        for name, source in self.sources.items():
            if name in values["sources"]:
                source.restore(values["sources"][name])
        self.intake.skipped = dict(values.get("skipped", {}))
        self.graph.restore(values["graph"])
        for name, node in self._counting().items():
            node.counters = replace(values.get("counters", {}).get(name, node.counters))
        self.outputs = []
