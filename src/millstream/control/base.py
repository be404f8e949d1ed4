"""What every host has in common: statements, catalog, sources of streams that are fed from the driver, and their clock.

A mill takes statements and elements; how queries run is its host's business: in this process on a virtual clock
(`LocalMill`), or as a Spark job (`SparkMill`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count, takewhile
from typing import Any

import polars as pl

from millstream.algebra.clock import Clock, VirtualClock
from millstream.algebra.element import Element, Page
from millstream.algebra.pattern import Pattern, parse_pattern
from millstream.algebra.schema import Schema
from millstream.algebra.types import MICROS
from millstream.config import Options
from millstream.control.outputs import QueryOutput
from millstream.control.statements import relations, run_statement, scanned
from millstream.errors import BindError, InputError, MillstreamError, OptionError, PatternError, did_you_mean
from millstream.ingest.arrivals import RejectedLine, check_pattern, check_punctuations, read_element
from millstream.ingest.rows import read_rows
from millstream.ingest.source import PunctuatedRows, StreamSource
from millstream.lang import ast, parse
from millstream.logical.binder import bind_select
from millstream.logical.catalog import Catalog, StreamDefinition
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from millstream.physical.plotting import Plotted


def wants_punctuation(sink: Any) -> bool:
    """Whether a sink has a use for the punctuation of a result."""
    return sink in (None, "memory", "console") or hasattr(sink, "write")


@dataclass(slots=True)
class RunningQuery:
    """A continuous query. `sink` is where its results go, None: they are kept until taken."""

    name: str
    text: str
    plan: Plan
    output: QueryOutput
    sink: Any = None
    sink_options: Mapping[str, str] = field(default_factory=dict)


class Mill(ABC):
    def __init__(self, options: Options | None = None, clock: Clock | None = None) -> None:
        self.options = options or Options.read()
        self.clock: Clock = clock or VirtualClock()
        self.catalog = Catalog()
        self.queries: dict[str, RunningQuery] = {}
        self.tables: dict[str, pl.DataFrame] = {}
        self._statements: dict[tuple[str, str], tuple[str, frozenset[str]]] = {}
        self._sources: dict[str, StreamSource] = {}
        self._arrived: list[tuple[str, Any]] = []
        self._next_beat = self._beat_after(0)

    # --- what a host does -------------------------------------------------------------------------------------------

    @abstractmethod
    def _attach(self, name: str, plan: Plan, *, punctuated: bool) -> QueryOutput:
        """Start to run a plan; its results go to the output, punctuation only if it is wanted."""

    @abstractmethod
    def plot(self, name: str, plan: Plan) -> list[Plotted]:
        """How a plan would be spread over shards, readers before those they read."""

    @abstractmethod
    def _sink_to(self, query: RunningQuery) -> None:
        """Send the results of a query where it says, or raise."""

    @abstractmethod
    def _detach(self, name: str) -> None:
        """Stop running a query."""

    @abstractmethod
    def _configure(self) -> None:
        """The options have changed."""

    @abstractmethod
    def _push(self, stream: str, element: Element) -> None:
        """Hand an element to all queries that read the stream."""

    @abstractmethod
    def _run(self) -> None:
        """Process what was pushed."""

    @abstractmethod
    def _beat(self) -> None:
        """Every source sends its time in band, and queries take it in."""

    # --- statements and queries -----------------------------------------------------------------------------------

    def execute(self, text: str) -> str:
        """Run a script of statements; what `EXPLAIN` and `SHOW` have to say comes back as text."""
        self.batch()
        said = [run_statement(self, statement) for statement in parse(text)]
        return "\n".join(part for part in said if part)

    def add_query(self, name: str, text: str) -> None:
        """Start a continuous query from a SELECT."""
        self.batch()
        statements = parse(text)
        if len(statements) != 1 or not isinstance(statements[0], ast.SelectStatement):
            raise BindError("M2090", "a query is one SELECT", line=1, column=1)
        self.start_query(name.lower(), f'CREATE QUERY "{name.lower()}" AS {statements[0].text}', statements[0].select)

    def start_query(
        self, name: str, text: str, select: ast.Query, sink: Any = None, sink_options: Mapping[str, str] | None = None
    ) -> None:
        if name in self.queries:
            raise BindError("M2091", f"query '{name}' exists already", hint=f"DROP QUERY {name} first")
        plan = self.plan(select)
        output = self._attach(name, plan, punctuated=wants_punctuation(sink))
        query = RunningQuery(name, text, plan, output, sink, dict(sink_options or {}))
        self.queries[name] = query
        try:
            self._sink_to(query)
        except MillstreamError:
            self._detach(name)
            del self.queries[name]
            raise
        self.remember("query", name, text, (*relations(select), *scanned(plan)))

    def plan(self, select: ast.Query) -> Plan:
        """The optimized plan of a query."""
        options, plan = self.options, bind_select(select, self.catalog)
        return optimize(plan, self.catalog, paned=options.paned, multi_join=options.join_grouping)

    def stop_query(self, name: str) -> None:
        self._detach(name)
        del self.queries[name]
        del self._statements["query", name]

    def free_name(self) -> str:
        """A name for a query that has none."""
        return next(name for n in count(1) if (name := f"query_{n}") not in self.queries)

    def remember(self, kind: str, name: str, text: str, reads: Iterable[str]) -> None:
        """Keep a statement for the checkpoint, with the relations that it reads."""
        bases = {base.lower().removesuffix("__late").removesuffix("__bad") for base in reads}
        self._statements[kind, name] = (text, frozenset(bases))

    def readers(self, relation: str) -> list[tuple[str, str]]:
        """The queries and derived streams that read a relation."""
        return [key for key, (_, reads) in self._statements.items() if relation in reads]

    def forget(self, relation: str) -> None:
        self._sources.pop(relation, None)
        self.tables.pop(relation, None)
        self._statements.pop(("relation", relation), None)

    def set_option(self, name: str, value: Any) -> None:
        if name.lower() == "shards" and self.queries:
            raise OptionError("M6004", "the number of shards cannot change while queries run", hint="set it first")
        self.options.change(name, value)
        self._next_beat = min(self._next_beat, self._beat_after(self.clock.now()))
        self._configure()

    def open_source(self, definition: StreamDefinition) -> None:
        self._sources[definition.name] = StreamSource(
            definition.schema,
            self.clock,
            watermark=definition.watermark,
            primary_key=definition.primary_key,
            max_skew=definition.max_skew,
            ascending=definition.ascending,
            page_rows=self.options.page_rows,
        )

    # --- data -----------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: Any) -> None:
        """Queue rows for the next batch: tuples or dicts, a Polars frame, an Arrow table, punctuated rows. Rows of a
        table are there at once."""
        name = self._relation(name)
        if name in self.tables:
            self._extend_table(name, rows)
            return
        if isinstance(rows, PunctuatedRows):
            check_punctuations(rows.punctuations, self._sources[name].schema)
        self._arrived.append((name, rows))

    def punctuate(self, name: str, *patterns: Pattern | str) -> None:
        """Queue punctuations, as patterns or as text."""
        name = self._relation(name)
        schema = self.catalog.stream(name).schema
        parsed = [parse_pattern(p, schema) if isinstance(p, str) else check_pattern(p, schema) for p in patterns]
        self._arrived += [(name, pattern) for pattern in parsed]

    def feed_line(self, name: str, line: str) -> None:
        """Queue one line of text: a tuple, or an element in brackets. One that is malformed becomes a bad row."""
        name = self._relation(name)
        if name in self.tables:
            self._extend_table(name, [line])
            return
        try:
            pattern = read_element(line, self._sources[name].schema)
        except (PatternError, InputError) as error:
            self._arrived.append((name, RejectedLine(line, error.message)))
        else:
            self._arrived.append((name, pattern or line))

    def _relation(self, name: str) -> str:
        name = name.lower()
        if name not in self._sources and name not in self.tables:
            known = [*self._sources, *self.tables]
            raise BindError("M2002", f"unknown stream '{name}'", hint=did_you_mean(name, known))
        return name

    def batch(self) -> None:
        """Process everything queued, as one micro-batch."""
        if not self._arrived:
            self._run()
        while self._arrived:
            name = self._arrived[0][0]
            run = self._next_run(name)
            taken = self._sources[name].take(run)
            del self._arrived[: len(run)]
            for element in taken.elements:
                self._push(name, element)
            if (order := self._sources[name].order()) is not None:
                self._push(name, order)  # for readers that got none of the tuples: behind a filter, on another shard
            if taken.late.height:
                self._push(f"{name}__late", Page(taken.late))
            if taken.bad.height:
                self._push(f"{name}__bad", Page(taken.bad))
            self._run()  # before the next stream's elements, so that operators see streams in order of arrival

    def _next_run(self, name: str) -> list[Any]:
        """The elements that have come of one stream before any of another."""
        return [element for _, element in takewhile(lambda arrival: arrival[0] == name, self._arrived)]

    def _extend_table(self, name: str, rows: Any) -> None:
        if readers := self.readers(name):
            what, reader = readers[0]
            hint = f"fill it before the {what} '{reader}' starts to read it"
            raise BindError("M2096", f"table '{name}' is static and in use", hint=hint)
        given = read_rows(rows, self.catalog.table(name).schema)
        if given.bad.height:
            line, reason = given.bad.row(0)[:2]
            raise BindError("M2095", f"row '{line}' does not fit table '{name}'", detail=reason)
        self.tables[name] = pl.concat([self.tables[name], given.frame.select(self.tables[name].columns)])

    def advance(self, micros: int) -> None:
        """Let system time pass; heartbeats that fall into it are sent, and idle operators ask for time."""
        self.batch()
        target = self.clock.now() + micros
        period = round(self.options.heartbeat * MICROS)
        while self.options.ets == "heartbeat" and self._next_beat <= target:
            self._reach(self._next_beat)
            self._beat()
            self._next_beat += period
        self._reach(target)
        self._next_beat = max(self._next_beat, self._beat_after(self.clock.now()))
        self._run()

    def _reach(self, now: int) -> None:
        """Move a virtual clock on."""
        if isinstance(self.clock, VirtualClock):
            self.clock.advance(max(0, now - self.clock.now()))

    def _beat_after(self, now: int) -> int:
        """When the next heartbeat is due: at multiples of its period."""
        period = round(self.options.heartbeat * MICROS)
        return now // period * period + period

    # --- results --------------------------------------------------------------------------------------------------

    def query(self, name: str) -> RunningQuery:
        found = self.queries.get(name.lower())
        if found is None:
            raise BindError("M2092", f"unknown query '{name}'", hint=did_you_mean(name, self.queries))
        return found

    def schema(self, name: str) -> Schema:
        return self.query(name).plan.schema

    def take_rows(self, name: str) -> pl.DataFrame:
        """All rows of a query since the last call."""
        return self.query(name).output.take_rows()

    def take_punctuations(self, name: str) -> list[Pattern]:
        return self.query(name).output.take_punctuations()

    @abstractmethod
    def state_rows(self, name: str) -> int:
        """How many tuples the operators of a query hold, over all shards."""

    @abstractmethod
    def request_punctuation(self, name: str) -> None:
        """Let the joins of a query put out the punctuation that may go, whatever `propagation` says."""

    def counts(self, stream: str) -> dict[str, int]:
        source = self._sources[self._relation(stream)]
        return {"accepted": source.accepted, "late": source.late, "bad": source.bad}
