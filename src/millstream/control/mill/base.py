"""A mill: statements, the catalog, queries, and the streams fed from the driver.

Queries run in jobs (`jobs`), in this process or on Spark. A mill appends its decisions to the jobs' control logs, in
order; shards apply them. Results arrive batch by batch. Jobs read the streams with a connector themselves. The mill
keeps what only the driver needs in a journal, and is recovered from it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import polars as pl

from millstream.algebra.clock import Clock, SystemClock, VirtualClock
from millstream.algebra.feedback import Feedback
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.algebra.upstream import PunctuationRequest, TimeRequest
from millstream.config import Options
from millstream.control import reports
from millstream.control.job.base import Job
from millstream.control.job.jobs import Jobs
from millstream.control.mill import changing, starting
from millstream.control.mill.connectors import Connectors
from millstream.control.mill.contracts import declared
from millstream.control.mill.deliveries import Deliveries
from millstream.control.mill.demand import prod_stream, send_prod
from millstream.control.mill.draining import drain
from millstream.control.mill.endings import Endings
from millstream.control.mill.failures import Failures
from millstream.control.mill.feedback import send_feedback
from millstream.control.mill.feeds import Feeds
from millstream.control.mill.join_settings import join_settings
from millstream.control.mill.journal import Journal
from millstream.control.mill.placement import PlacedPart, Placement, Placements
from millstream.control.mill.prodders import Prodders
from millstream.control.mill.readings import Readings
from millstream.control.mill.registration import Registration
from millstream.control.mill.relay import Relay
from millstream.control.mill.running_query import RunningQuery
from millstream.control.mill.statements import run_statement
from millstream.control.mill.table_rows import extend_table
from millstream.control.mill.timekeeper import Timekeeper
from millstream.control.mill.written import WrittenTables
from millstream.control.observe.capacity import Capacities
from millstream.control.observe.stream_progress import counts_of, read_counts
from millstream.errors import BindError, OptionError, PatternError, did_you_mean
from millstream.ingest.source import StreamSource
from millstream.lang import ast, parse
from millstream.lang.names import free_name
from millstream.logical.bind import bind_select
from millstream.logical.catalog import Catalog
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from millstream.physical.plan.preparation import PreparedPart, prepare
from millstream.physical.shard.batch import Status
from millstream.physical.wire.records import Feed, Send, Settings
from millstream.strategies import Schedule


class Mill(Registration):
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
        self.bad_rows: dict[str, int] = {}
        """Number of rows of each table's files that did not fit."""
        self.journal = Journal(jobs, name)
        self.feeds = Feeds(self.clock)
        self.connectors = Connectors(self.catalog)
        self.placements = Placements(name)
        self._feeding = threading.Lock()
        self.deliveries = Deliveries(name, self.queries, self.placements)
        self.readings = Readings(self.placements, self.journal, at_once=jobs.at_once, released=wall or jobs.at_once)
        self.deliveries.note_sources = self.readings.note
        self.relay = Relay(self)
        self.deliveries.relay = self.relay.pass_on
        self.failures = self.deliveries.failures = Failures(self)
        self.endings = self.deliveries.endings = Endings(self)
        self.time = Timekeeper(self)
        self.reported = reports.made(self)
        self.deliveries.reported = self.reported.values()
        self.written = WrittenTables(self)
        self.prodders = Prodders(self)
        self.feeds.cut = self.prodders.cut
        self.capacities = Capacities(self)

    # --- statements and queries -------------------------------------------------------------------------------------

    def execute(self, text: str) -> str:
        """Run a script of statements; return the text of `EXPLAIN` and `SHOW`."""
        return self.run(parse(text))

    def run(self, statements: Iterable[ast.Statement]) -> str:
        """Run parsed statements; errors have the positions of the text that they were parsed from."""
        self.batch()
        texts = [run_statement(self, statement) for statement in statements]
        self.take_effect()
        return "\n".join(filter(None, texts))

    def add_query(self, name: str, text: str, start: str = "now") -> None:
        """Start a continuous query from a SELECT. `start`: what it sees, see `ast.STARTS`."""
        self.batch()
        statements = parse(text)
        if len(statements) != 1 or not isinstance(statements[0], ast.SelectStatement):
            raise BindError("M2090", "a query is one SELECT", line=1, column=1)
        select, name = statements[0], name.lower()
        self.start_query(name, ast.query_text(name, select, start), select.select, start=ast.Start(start))
        self.take_effect()

    def take_effect(self) -> None:
        """Where a batch costs little, have the jobs apply the statements at once."""
        if self.jobs.at_once and not self.journal.recovering:
            self.jobs.work_off()
            self.sync()

    start_query = starting.start_query

    def plan(self, select: ast.Runs) -> Plan:
        """The optimized plan of a query."""
        plan = self.optimized(bind_select(select, self.catalog))
        self.written.check(plan)
        return plan

    def optimized(self, plan: Plan) -> Plan:
        options = self.options
        chosen = {"multi_join": options.join_grouping, "accumulators": options.accumulators}
        return optimize(plan, self.catalog, paned=options.paned, declarations=declared(self), **chosen)

    def prepare(self, name: str, plan: Plan) -> list[PreparedPart]:
        """Return the parts of a plan for the shards; a part precedes the parts it reads."""
        return prepare(name, plan, self.connectors.read_by(plan), self.jobs.shards)

    def adopt(self, name: str, frame: Any) -> None:
        """Make a DataFrame the source of a stream that was declared for one."""
        self.connectors.frames[name] = frame
        for placement in self.placements.of.values():
            if any(name in part.reads for part in placement.parts):
                placement.job.adopt({name: frame})

    def stop_query(self, name: str) -> None:
        self.unplace(name)
        del self.queries[name]
        self.journal.drop("query", name)
        self.deliveries.close_sink(name, dropped=not self.journal.recovering)
        if not self.journal.recovering:
            self.failures.discard(name)

    def unplace(self, name: str) -> None:
        """Stop the parts of a query in its job."""
        if name in self.placements.of and not self.journal.recovering:
            placement = self.placements.of[name]
            counts = read_counts(self, placement.reads & self.connectors.names())
            for reported in self.reported.values():
                reported.leave(name)
            self.placements.remove(name)
            self.readings.leave(placement.job, counts)

    def free_name(self, stem: str = "query") -> str:
        """Return an unused name for a query."""
        return free_name(self.queries, stem)

    def forget(self, relation: str) -> None:
        """Forget a dropped stream or table."""
        if relation in self.feeds.sources:
            self.readings.forget(relation)
        self.feeds.forget(relation)
        self.written.forget(relation)
        self.tables.pop(relation, None)
        self.bad_rows.pop(relation, None)
        for reported in self.reported.values():
            reported.forget(relation)
        self.connectors.forget(relation)
        self.journal.drop("relation", relation)

    set_option = changing.set_option

    def settings(self) -> Settings:
        """Settings of the graphs in this mill's shards."""
        options = self.options
        joins = join_settings(options)
        scheduled = options.strategy, options.ets, options.page_rows, joins, self.time.wall, options.breaks
        return Settings(*scheduled, options.exploit, options.propagate)

    def schedule(self) -> Schedule:
        """Strategies and breaks, of all operators and of some."""
        return Schedule.parse(self.options.strategy, self.options.breaks)

    # --- data -------------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: Any) -> None:
        """Queue rows for the next batch: tuples or dicts, a Polars frame, an Arrow table, punctuated rows. A table
        has its rows at once."""
        name = self._relation(name)
        if name in self.tables:
            extend_table(self, name, rows)
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
            extend_table(self, name, [line])
        else:
            self.feeds.line(name, line)

    def _relation(self, name: str) -> str:
        if not isinstance(name, str):
            raise BindError("M2002", f"expected the name of a stream, found {type(name).__name__}")
        name = name.lower()
        if name not in self.feeds.sources and name not in self.tables:
            known = [*self.feeds.sources, *self.tables]
            hint = did_you_mean(name, known) or "there is no stream yet: CREATE STREAM …"
            raise BindError("M2002", f"unknown stream '{name}'", hint=hint)
        if name in self.feeds.sources and (connector := self.catalog.stream(name).options.get("connector")):
            hint = "only streams without a connector are fed"
            raise BindError("M2097", f"stream '{name}' is read from {connector}", hint=hint)
        return name

    def batch(self) -> None:
        """Process everything queued, as one micro-batch."""
        self.failures.settle()
        self.endings.settle()
        skewed = any(stream.max_skew is not None for stream in self.catalog.streams)
        while self._feed_next():
            # A promise may make the next stream's tuples late, so it may not depend on how the input is cut.
            if skewed and self.feeds and not self.journal.recovering:
                self.time.catch_up(skewed=True)
        if not self.journal.recovering:
            self.time.catch_up(skewed=skewed)

    def _feed_next(self) -> bool:
        """Write the first elements of one stream to the log: operators see streams in order of arrival. Return whether
        there were any."""
        with self._feeding:
            if not self.feeds:
                return False
            elements = self.prodders.by_tuples(self.feeds.take())
            if elements:
                try:
                    self.placements.append(Feed(self.name, self.clock.now(), tuple(elements)))
                except OptionError as error:  # a full disk
                    error.detail = "The rows were not taken."
                    error.hint = "make room; the next rows are taken, without a new start"
                    raise
            self.note_sources()
            return True

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
        """Wait until the jobs have processed everything fed, and no operator waits for time that could be promised.
        Raise the error of a query that has failed if no query is left."""
        self.time.sync()

    def request_reports(self) -> None:
        """Make every shard report, even if it has nothing to do."""
        self.placements.append(Send(self.name, TimeRequest()))

    # --- results ----------------------------------------------------------------------------------------------------

    def query(self, name: str) -> RunningQuery:
        found = self.queries.get(name.lower()) if isinstance(name, str) else None
        if found is None:
            hint = did_you_mean(str(name), self.queries) or "there is no query yet: CREATE QUERY … AS SELECT …"
            raise BindError("M2092", f"unknown query '{name}'", hint=hint)
        return found

    def schema(self, name: str) -> Schema:
        return self.query(name).plan.schema

    def take_rows(self, name: str) -> pl.DataFrame:
        """All rows of a query since the last call."""
        query = self.query(name)
        self.sync()
        with self.deliveries.lock:
            rows = query.output.take_rows()
        if not rows.height:
            self.failures.raise_of(name)
        return rows

    def take_punctuations(self, name: str) -> list[Pattern]:
        query = self.query(name)
        self.sync()
        with self.deliveries.lock:
            return query.output.take_punctuations()

    def report_all(self) -> None:
        """Wait until every shard has reported."""
        self.sync()
        if not all(placement.all_reported() for placement in self.placements.of.values()):
            self.request_reports()  # after a restart shards report only on request
            self.sync()

    def state_rows(self, name: str) -> int:
        """Number of tuples that the operators of a query hold on all shards."""
        if self.query(name).finished is not None:
            return 0
        placement = self.placement(name)
        self.report_all()
        return sum(status.state[part.name] for part, _, status in placement.reports())

    def request_punctuation(self, name: str) -> None:
        """Have the joins of a query emit the punctuation that they can emit, whatever `propagation` says."""
        self.batch()
        for query in {part.started.whole: None for part in self.placement(name).parts}:
            self.placements.append(Send(self.name, PunctuationRequest(), query), self.job(name))

    def feedback(self, name: str, text: str | Feedback) -> list[PatternError]:
        """Send feedback to the top of a query: a pattern over its columns, after ~ if matching rows are not wanted,
        after ? if they are wanted first, after ! if now. It takes effect with the next batch. Return warnings."""
        self.batch()
        return send_feedback(self, self.query(name).name, text)

    def prod(self, name: str, text: str = "{}") -> list[PatternError]:
        """Ask a query for its results so far, by a pattern over its windows and groups, or all queries that read a
        stream, by one over the columns of the stream. It takes effect with the next batch. Return warnings."""
        if name not in self.queries and name in self.feeds.sources:
            prod_stream(self, name, text)
            return []
        self.batch()
        return send_prod(self, self.query(name).name, text)

    def counts(self, stream: str) -> dict[str, int]:
        """Numbers of accepted, late and bad rows of a stream (0 before a query has read it), or of a table."""
        return counts_of(self, stream)

    def drain(self) -> None:
        """Read the streams with a connector up to their newest rows, or to their end, and finish all work."""
        self.batch()
        drain(self)

    def fed(self, stream: str) -> StreamSource | None:
        """The source of a stream fed from the driver; None if the jobs read the stream."""
        return None if self.catalog.stream(stream).options.get("connector") else self.feeds.sources.get(stream)

    def ended(self) -> bool:
        """Return whether every stream that the jobs read for a query has ended on every shard, no operator has work
        left, and no results wait for a sink."""
        settled = bool(self.queries) and all(job.settled() for job in self.placements.jobs())
        worked_off = settled and self.placements.ended(self.connectors.names()) and not self.placements.pending()
        return worked_off and not self.deliveries.waiting()

    def waiting(self) -> dict[str, int]:
        """Number of rows that wait in each stream that the jobs read, where it is known."""
        return self.connectors.waiting(self.name, self.placements.jobs(), self.placements.read())

    def reports(self, name: str) -> list[tuple[PlacedPart, int, Status]]:
        """The last report of each shard that runs a query: the part it runs, its number, its status."""
        return self.placement(name).reports()

    def placement(self, name: str) -> Placement:
        """The placement of a query; raise its error if it has failed, or an error if it has ended."""
        self.failures.raise_of(name)
        self.endings.check(name)
        return self.placements.of[self.query(name).name]

    def job(self, name: str) -> Job:
        return self.placement(name).job

    def close(self) -> None:
        """Stop all queries of this mill in its jobs."""
        self.placements.of.clear()
        self.placements.close_unused()
        self.queries.clear()
        self.deliveries.close()
