"""A mill: statements, the catalog, queries, and the streams fed from the driver.

Queries run in jobs (`jobs`), in this process or on Spark. A mill appends its decisions to the jobs' control logs, in
order; shards apply them. Results arrive batch by batch. Jobs read the streams with a connector themselves. The mill
keeps what only the driver needs in a journal, and is recovered from it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import polars as pl

from millstream.algebra.clock import Clock, SystemClock, VirtualClock
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.algebra.upstream import PunctuationRequest, TimeRequest
from millstream.config import Options
from millstream.control.job.base import Job
from millstream.control.job.jobs import Jobs
from millstream.control.mill.connectors import Connectors
from millstream.control.mill.deliveries import Deliveries
from millstream.control.mill.feeds import Feeds
from millstream.control.mill.join_settings import join_settings
from millstream.control.mill.journal import Journal
from millstream.control.mill.outputs import QueryOutput
from millstream.control.mill.placement import PlacedPart, Placement, Placements
from millstream.control.mill.statements import relations, run_statement, scanned
from millstream.control.mill.timekeeper import Timekeeper
from millstream.control.observe.stream_progress import stream_progress
from millstream.errors import BindError, MillstreamError, OptionError, did_you_mean
from millstream.ingest.rows import read_rows
from millstream.ingest.source import StreamSource
from millstream.lang import ast, parse
from millstream.logical.bind import bind_select
from millstream.logical.catalog import Catalog
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from millstream.physical.plan import stages
from millstream.physical.plan.preparation import PreparedPart, prepare
from millstream.physical.shard.batch import Status
from millstream.physical.wire.records import Configure, Feed, OpenGroup, Send, Settings


@dataclass(slots=True)
class RunningQuery:
    """A continuous query. `sink`: the destination of its results; None: they are kept until taken."""

    name: str
    text: str
    plan: Plan
    output: QueryOutput
    sink: Any = None
    sink_options: Mapping[str, str] = field(default_factory=dict)


class Mill:
    """With `wall` its clock is the machine's, and a pacer gives waiting operators the time. Otherwise the clock is
    virtual, and `sync` gives it."""

    def __init__(self, jobs: Jobs, name: str = "main", options: Options | None = None, *, wall: bool = False) -> None:
        self.options = options or Options.read()
        self.clock: Clock = SystemClock() if wall else VirtualClock()
        self.jobs, self.name = jobs, name
        self.options.shards = jobs.shards
        self.catalog = Catalog()
        self.queries: dict[str, RunningQuery] = {}
        self.tables: dict[str, pl.DataFrame] = {}
        self.journal = Journal(jobs, name)
        self.feeds = Feeds(self.clock)
        self.connectors = Connectors(self.catalog)
        self.placements = Placements(name)
        self._feeding = threading.Lock()
        self.deliveries = Deliveries(name, self.queries, self.placements)
        self.time = Timekeeper(self)

    # --- statements and queries -------------------------------------------------------------------------------------

    def execute(self, text: str) -> str:
        """Run a script of statements; return the text of `EXPLAIN` and `SHOW`."""
        self.batch()
        texts = [run_statement(self, statement) for statement in parse(text)]
        self._take_effect()
        return "\n".join(filter(None, texts))

    def add_query(self, name: str, text: str) -> None:
        """Start a continuous query from a SELECT."""
        self.batch()
        statements = parse(text)
        if len(statements) != 1 or not isinstance(statements[0], ast.SelectStatement):
            raise BindError("M2090", "a query is one SELECT", line=1, column=1)
        self.start_query(name.lower(), f'CREATE QUERY "{name.lower()}" AS {statements[0].text}', statements[0].select)
        self._take_effect()

    def _take_effect(self) -> None:
        """Where a batch costs little, have the jobs apply the statements at once."""
        if self.jobs.at_once and not self.journal.recovering:
            self.jobs.work_off()
            self.sync()

    def start_query(
        self, name: str, text: str, select: ast.Query, sink: Any = None, sink_options: Mapping[str, str] | None = None
    ) -> None:
        if name in self.queries:
            raise BindError("M2091", f"query '{name}' exists already", hint=f"DROP QUERY {name} first")
        plan = self.plan(select)
        if isinstance(sink, str) and sink.lower() == "memory" and not sink_options:
            sink = None  # its output is what `take_rows` takes
        if name not in self.placements.of:  # otherwise it was recovered
            reads_punctuation = sink in (None, "console") or hasattr(sink, "write")
            self._place(name, plan, punctuated=reads_punctuation)
        output = QueryOutput(plan.schema, len(self.placements.of[name].top.labels))
        query = RunningQuery(name, text, plan, output, sink, dict(sink_options or {}))
        self.queries[name] = query
        try:
            self.deliveries.open_sink(query)
        except MillstreamError:
            self._unplace(name)
            del self.queries[name]
            raise
        self.journal.statement("query", name, text, (*relations(select), *scanned(plan)))

    def plan(self, select: ast.Query) -> Plan:
        """The optimized plan of a query."""
        return self.optimized(bind_select(select, self.catalog))

    def optimized(self, plan: Plan) -> Plan:
        return optimize(plan, self.catalog, paned=self.options.paned, multi_join=self.options.join_grouping)

    def prepare(self, name: str, plan: Plan) -> list[PreparedPart]:
        """Return the parts of a plan for the shards; a part precedes the parts it reads."""
        return prepare(name, plan, self.connectors.read_by(plan), self.jobs.shards)

    def _place(self, name: str, plan: Plan, *, punctuated: bool) -> None:
        """Start the parts of a plan in a job."""
        streams, prepared = self.connectors.read_by(plan), self.prepare(name, plan)
        frames = self.connectors.open_all(streams)
        job = self.jobs.job(frozenset(frames), stages.depth([part.part for part in prepared]))
        self.placements.of[name] = placement = Placement(job)
        groups: dict[str, OpenGroup] = {}
        for part in prepared:
            group = self.placements.open_group(job, part, self.settings(), self.deliveries)
            groups[part.part.name] = group
            placement.parts.append(PlacedPart(part.part.name, group, part.reads))
            self.placements.append(part.start(name, groups, streams, self.tables, punctuated=punctuated), job)
        if frames:
            job.adopt(self.name, frames)

    def adopt(self, name: str, frame: Any) -> None:
        """Make a DataFrame the source of a stream that was declared for one."""
        self.connectors.frames[name] = frame
        for placement in self.placements.of.values():
            if any(name in part.reads for part in placement.parts):
                placement.job.adopt(self.name, {name: frame})

    def stop_query(self, name: str) -> None:
        self._unplace(name)
        del self.queries[name]
        self.journal.drop("query", name)
        self.deliveries.close_sink(name)

    def _unplace(self, name: str) -> None:
        if name in self.placements.of and not self.journal.recovering:
            self.placements.remove(name)

    def free_name(self) -> str:
        """Return an unused name for a query."""
        return next(name for n in count(1) if (name := f"query_{n}") not in self.queries)

    def forget(self, relation: str) -> None:
        """Forget a dropped stream or table."""
        self.feeds.sources.pop(relation, None)
        self.tables.pop(relation, None)
        self.connectors.forget(relation)
        self.journal.drop("relation", relation)

    def set_option(self, name: str, value: Any) -> None:
        if name.lower() == "shards" and self.queries:
            raise OptionError("M6004", "the number of shards cannot change while queries run", hint="set it first")
        self.options.change(name, value)
        if name.lower() == "shards" and not self.journal.recovering:
            self.jobs.reshard(self.options.shards)
        self.time.reconsider()
        if not self.journal.recovering:
            self.placements.append(Configure(self.name, self.settings()))
        self.journal.note("option", (name, value))

    def settings(self) -> Settings:
        """Settings of the graphs in this mill's shards."""
        options = self.options
        return Settings(options.strategy, options.ets, options.page_rows, join_settings(options))

    # --- data -------------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: Any) -> None:
        """Queue rows for the next batch: tuples or dicts, a Polars frame, an Arrow table, punctuated rows. A table
        has its rows at once."""
        name = self._relation(name)
        if name in self.tables:
            self._extend_table(name, rows)
        else:
            self.feeds.insert(name, rows)

    def punctuate(self, name: str, *patterns: Pattern | str) -> None:
        """Queue punctuations, as patterns or as text."""
        name = self._relation(name)
        self.catalog.stream(name)
        self.feeds.punctuate(name, patterns)

    def feed_line(self, name: str, line: str) -> None:
        """Queue one line of text: a tuple, or an element in brackets. A malformed line becomes a bad row."""
        name = self._relation(name)
        if name in self.tables:
            self._extend_table(name, [line])
        else:
            self.feeds.line(name, line)

    def _relation(self, name: str) -> str:
        name = name.lower()
        if name not in self.feeds.sources and name not in self.tables:
            known = [*self.feeds.sources, *self.tables]
            raise BindError("M2002", f"unknown stream '{name}'", hint=did_you_mean(name, known))
        if name in self.feeds.sources and (connector := self.catalog.stream(name).options.get("connector")):
            hint = "only streams without a connector are fed"
            raise BindError("M2097", f"stream '{name}' is read from {connector}", hint=hint)
        return name

    def _extend_table(self, name: str, rows: Any) -> None:
        if readers := self.journal.readers(name):
            what, reader = readers[0]
            hint = f"fill it before {what} '{reader}' reads it"
            raise BindError("M2096", f"table '{name}' is static and in use", hint=hint)
        read = read_rows(rows, self.catalog.table(name).schema)
        if read.bad.height:
            line, reason = read.bad.row(0)[:2]
            raise BindError("M2095", f"row '{line}' does not fit table '{name}'", detail=reason)
        self.tables[name] = pl.concat([self.tables[name], read.frame.select(self.tables[name].columns)])
        self.journal.note("table", (name, self.tables[name]))

    def batch(self) -> None:
        """Process everything queued, as one micro-batch."""
        with self._feeding:
            while self.feeds:
                # A record for each run of one stream's elements: operators see streams in order of arrival.
                elements = self.feeds.take()
                if elements:
                    self.placements.append(Feed(self.name, self.clock.now(), tuple(elements)))
                self.note_sources()
        if not self.journal.recovering:
            self.time.catch_up(skewed=any(stream.max_skew is not None for stream in self.catalog.streams))

    def note_sources(self, *, in_memory: bool = False) -> None:
        """Note the state of the clock and of the fed streams for recovery. Jobs kept in memory need that only when the
        mill restarts."""
        if in_memory or self.jobs.folder is not None:
            self.journal.note("sources", (self.clock.now(), self.time.next_beat, *self.feeds.snapshot()))

    # --- time -------------------------------------------------------------------------------------------------------

    def advance(self, micros: int) -> None:
        """Let system time pass: send the heartbeats that fall due, and answer operators that wait for time."""
        self.batch()
        self.time.advance(micros)

    def sync(self) -> None:
        """Wait until the jobs have processed everything fed, and no operator waits for time that could be promised."""
        self.time.sync()

    def request_reports(self) -> None:
        """Make every shard report, even if it has nothing to do."""
        self.placements.append(Send(self.name, TimeRequest()))

    # --- results ----------------------------------------------------------------------------------------------------

    def query(self, name: str) -> RunningQuery:
        found = self.queries.get(name.lower())
        if found is None:
            raise BindError("M2092", f"unknown query '{name}'", hint=did_you_mean(name, self.queries))
        return found

    def schema(self, name: str) -> Schema:
        return self.query(name).plan.schema

    def take_rows(self, name: str) -> pl.DataFrame:
        """All rows of a query since the last call."""
        query = self.query(name)
        self.sync()
        with self.deliveries.lock:
            return query.output.take_rows()

    def take_punctuations(self, name: str) -> list[Pattern]:
        query = self.query(name)
        self.sync()
        with self.deliveries.lock:
            return query.output.take_punctuations()

    def state_rows(self, name: str) -> int:
        """Number of tuples that the operators of a query hold on all shards."""
        placement = self.placement(name)
        self.sync()
        if not placement.all_reported():
            self.request_reports()  # after a restart shards report only on request
            self.sync()
        return sum(status.state[part.name] for part, _, status in placement.reports())

    def request_punctuation(self, name: str) -> None:
        """Have the joins of a query emit the punctuation that they can emit, whatever `propagation` says."""
        self.batch()
        self.placements.append(Send(self.name, PunctuationRequest(), self.query(name).name), self.job(name))

    def counts(self, stream: str) -> dict[str, int]:
        """Numbers of accepted, late and bad rows of a stream; 0 if jobs read it and no query has read it yet."""
        definition = self.catalog.stream(stream)
        fed = self.fed(definition.name)
        read = stream_progress(self).get(definition.name) if fed is None else fed
        return {what: getattr(read, what, 0) for what in ("accepted", "late", "bad")}

    def fed(self, stream: str) -> StreamSource | None:
        """The source of a stream fed from the driver; None if the jobs read the stream."""
        return None if self.catalog.stream(stream).options.get("connector") else self.feeds.sources.get(stream)

    def ended(self) -> bool:
        """Return whether every stream that the jobs read for a query has ended on every shard."""
        if not self.queries or any(not job.settled() for job in self.placements.jobs()):
            return False
        return self.placements.ended(self.connectors.names())

    def waiting(self) -> dict[str, int]:
        """Number of rows that wait in each stream that the jobs read, where it is known."""
        return self.connectors.waiting(self.name, self.placements.jobs())

    def reports(self, name: str) -> list[tuple[PlacedPart, int, Status]]:
        """The last report of each shard that runs a query: the part it runs, its number, its status."""
        return self.placement(name).reports()

    def placement(self, name: str) -> Placement:
        return self.placements.of[self.query(name).name]

    def job(self, name: str) -> Job:
        """The job that runs a query."""
        return self.placement(name).job

    def close(self) -> None:
        """Stop all queries of this mill in its jobs."""
        self.placements.of.clear()
        self.placements.close_unused()
        self.queries.clear()
        self.deliveries.close()
