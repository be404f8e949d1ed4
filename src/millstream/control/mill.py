"""The in-process host: a whole Millstream in one Python process, on a virtual clock.

It runs statements, feeds streams, and drives the engine batch by batch. Transcripts, `EXPLAIN`, the experiments on
scheduling and fast tests stand on it; the Spark data plane hosts the same operators.

>>> mill = LocalMill()
>>> _ = mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
>>> _ = mill.execute("CREATE QUERY q AS SELECT k FROM s WHERE k > 1")
>>> mill.insert("s", [(1, 10), (2, 11)])
>>> mill.batch()
>>> mill.take_rows("q").rows()
[(2,)]
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from millstream.algebra.clock import VirtualClock
from millstream.algebra.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation import Punctuations
from millstream.algebra.schema import Schema
from millstream.algebra.types import MICROS
from millstream.config import Options
from millstream.control.outputs import QueryOutput
from millstream.control.shards import ShardGroup
from millstream.errors import BindError, InputError, OptionError, PatternError, did_you_mean
from millstream.ingest.arrivals import RejectedLine, read_element
from millstream.ingest.source import StreamSource
from millstream.ingest.tables import read_table
from millstream.lang import ast, parse
from millstream.logical.binder import bind_select, bind_stream, bind_table
from millstream.logical.catalog import Catalog
from millstream.logical.explain import explain
from millstream.logical.plan import Plan, Scan
from millstream.optimizer import optimize
from millstream.physical.explain import explain_physical
from millstream.physical.partitioning import Keys, partition_keys
from millstream.runtime.engine import NodeStatistics


@dataclass(slots=True)
class RunningQuery:
    name: str
    text: str
    plan: Plan
    group: ShardGroup
    output: QueryOutput


GroupKey = tuple[tuple[str, tuple[str, ...]], ...] | None


class LocalMill:
    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.clock = VirtualClock()
        self.catalog = Catalog()
        self.queries: dict[str, RunningQuery] = {}
        self._statements: dict[tuple[str, str], str] = {}
        self._sources: dict[str, StreamSource] = {}
        self._tables: dict[str, pl.DataFrame] = {}
        self._groups: dict[GroupKey, ShardGroup] = {}
        self._arrived: list[tuple[str, Any]] = []
        self._next_beat = round(self.options.heartbeat * MICROS)
        self._anonymous = 0

    # --- statements -----------------------------------------------------------------------------------------------

    def execute(self, text: str) -> str:
        """Run a script of statements; what `EXPLAIN` and `SHOW` have to say comes back as text."""
        self.batch()
        return "\n".join(said for said in map(self._statement, parse(text)) if said)

    def _statement(self, statement: ast.Statement) -> str:
        match statement:
            case ast.CreateStream():
                definition = bind_stream(statement, self.catalog)
                self.catalog.add_stream(definition)
                self._sources[definition.name] = self._source(definition.name)
            case ast.CreateDerivedStream():
                self.catalog.add_derived(statement.name, bind_select(statement.select, self.catalog))
            case ast.CreateTable():
                table = bind_table(statement, self.catalog)
                self.catalog.add_table(table)
                self._tables[table.name] = read_table(table.schema, dict(table.options))
            case ast.CreateQuery():
                if statement.into is not None and statement.into.lower() != "memory":
                    hint = "The in-process host keeps results in memory."
                    raise OptionError("M6003", f"unknown sink '{statement.into}'", hint=hint)
                self._add_query(statement.name, statement.text, bind_select(statement.select, self.catalog))
                return ""
            case ast.SelectStatement():
                self._anonymous += 1
                self.add_query(f"query_{self._anonymous}", statement.text)
                return ""
            case ast.Drop():
                self._drop(statement)
                return ""
            case ast.SetOption():
                self._set(statement.name, statement.value)
                return ""
            case ast.Explain():
                return self._explain(statement)
            case ast.Show():
                return self._show(statement.what)
        name = getattr(statement, "name", "")
        self._statements["relation", name] = statement.text
        return ""

    def add_query(self, name: str, text: str) -> None:
        """Start a continuous query from a SELECT."""
        self.batch()
        statements = parse(text)
        if len(statements) != 1 or not isinstance(statements[0], ast.SelectStatement):
            raise BindError("M2090", "a query is one SELECT", line=1, column=1)
        plan = bind_select(statements[0].select, self.catalog)
        self._add_query(name.lower(), f"CREATE QUERY {name} AS {statements[0].text}", plan)

    def _add_query(self, name: str, text: str, bound: Plan) -> None:
        if name in self.queries:
            raise BindError("M2091", f"query '{name}' exists already", hint=f"DROP QUERY {name} first")
        plan = self._optimize(bound)
        keys = partition_keys(plan) if self.options.shards > 1 else None
        group = self._group(keys)
        output = QueryOutput(plan.schema, len(group.graphs))
        group.add(name, plan, output.deliver)
        self.queries[name] = RunningQuery(name, text, plan, group, output)
        self._statements["query", name] = text

    def _group(self, keys: Keys | None) -> ShardGroup:
        key = None if keys is None else tuple(sorted(keys.items()))
        if key not in self._groups:
            self._groups[key] = ShardGroup(keys, self.options, self._ets, self._tables)
        return self._groups[key]

    def _optimize(self, plan: Plan) -> Plan:
        return optimize(plan, self.catalog, paned=self.options.paned)

    def _drop(self, statement: ast.Drop) -> None:
        kind, name = statement.kind.lower(), statement.name
        if kind == "query":
            query = self.queries.pop(name, None)
            if query is None:
                if not statement.if_exists:
                    raise BindError("M2092", f"unknown query '{name}'", hint=did_you_mean(name, self.queries))
                return
            query.group.remove(name)
            del self._statements["query", name]
            return
        readers = [q.name for q in self.queries.values() if self._reads(q.plan, name)]
        if readers:
            hint = f"DROP QUERY {readers[0]} first"
            raise BindError("M2093", f"{kind} '{name}' is read by query '{readers[0]}'", hint=hint)
        if self.catalog.drop(kind, name, if_exists=statement.if_exists):
            self._sources.pop(name, None)
            self._tables.pop(name, None)
            self._statements.pop(("relation", name), None)

    @staticmethod
    def _reads(plan: Plan, name: str) -> bool:
        names = {name, f"{name}__late", f"{name}__bad"}
        return any(
            (isinstance(p, Scan) and p.stream in names) or getattr(p, "table", None) == name for p in plan.walk()
        )

    def _set(self, name: str, value: Any) -> None:
        if name.lower() == "shards" and self.queries:
            raise OptionError("M6004", "the number of shards cannot change while queries run", hint="set it first")
        self.options.change(name, value)
        for group in self._groups.values():
            group.configure(self.options)

    def _explain(self, statement: ast.Explain) -> str:
        inner = statement.statement
        plan = bind_select(inner.select, self.catalog)
        match statement.stage.upper():
            case "LOGICAL":
                return explain(plan)
            case "PHYSICAL":
                return explain_physical(self._optimize(plan), self.options.shards, self.options.strategy)
            case "CONTRACT":
                raise OptionError("M6005", "EXPLAIN CONTRACT is not available yet")
        return explain(self._optimize(plan))

    def _show(self, what: str) -> str:
        if what.upper() == "QUERIES":
            return "\n".join(f"{q.name}: {q.output.rows_out} rows out" for q in self.queries.values())
        lines = []
        for name, source in self._sources.items():
            lines.append(f"{name} {source.schema}: {source.accepted} in, {source.late} late, {source.bad} bad")
        return "\n".join(lines)

    # --- data -----------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: Any) -> None:
        """Queue rows (a sequence of tuples or dicts, a Polars frame, an Arrow table) for the next batch."""
        self._arrived.append((self._relation(name), rows))

    def punctuate(self, name: str, *patterns: Pattern | str) -> None:
        """Queue punctuations, as patterns or as text."""
        name = self._relation(name)
        schema = self.catalog.stream(name).schema
        parsed = [parse_pattern(pattern, schema) if isinstance(pattern, str) else pattern for pattern in patterns]
        self._arrived += [(name, pattern) for pattern in parsed]

    def feed_line(self, name: str, line: str) -> None:
        """Queue one line of text: a tuple, or an element in brackets. One that is malformed becomes a bad row."""
        name = self._relation(name)
        try:
            pattern = None if name in self._tables else read_element(line, self._sources[name].schema)
        except (PatternError, InputError) as error:
            self._arrived.append((name, RejectedLine(line, error.message)))
        else:
            self._arrived.append((name, pattern or line))

    def _relation(self, name: str) -> str:
        name = name.lower()
        if name not in self._sources and name not in self._tables:
            known = [*self._sources, *self._tables]
            raise BindError("M2094", f"unknown stream '{name}'", hint=did_you_mean(name, known))
        return name

    def batch(self) -> None:
        """Process everything queued, as one micro-batch."""
        arrived, self._arrived = self._arrived, []
        start = 0
        while start < len(arrived):
            name = arrived[start][0]
            end = start
            while end < len(arrived) and arrived[end][0] == name:
                end += 1
            self._take(name, [element for _, element in arrived[start:end]])
            self._run()  # before the next stream's elements, so that operators see streams in order of arrival
            start = end
        if not arrived:
            self._run()

    def _take(self, name: str, elements: list[Any]) -> None:
        if name in self._tables:
            self._extend_table(name, elements)
            return
        taken = self._sources[name].take(elements)
        for element in taken.elements:
            self._push(name, element)
        if taken.late.height:
            self._push(f"{name}__late", taken.late)
        if taken.bad.height:
            self._push(f"{name}__bad", taken.bad)

    def _extend_table(self, name: str, elements: Sequence[Any]) -> None:
        if readers := [query.name for query in self.queries.values() if self._reads(query.plan, name)]:
            hint = f"DROP QUERY {readers[0]} first, or fill the table before the query starts"
            raise BindError("M2096", f"table '{name}' is static: query '{readers[0]}' reads it", hint=hint)
        scratch = StreamSource(self.catalog.table(name).schema, self.clock)
        taken = scratch.take(list(elements))
        if taken.bad.height:
            line, reason = taken.bad.row(0)[:2]
            raise BindError("M2095", f"row '{line}' does not fit table '{name}'", detail=reason)
        pages = [element for element in taken.elements if isinstance(element, pl.DataFrame)]
        frame = self._tables[name]
        self._tables[name] = pl.concat([frame, *(page.select(frame.columns) for page in pages)])

    def _push(self, stream: str, element: pl.DataFrame | Punctuations) -> None:
        for group in self._groups.values():
            group.push(stream, element)

    def _run(self) -> None:
        for group in self._groups.values():
            group.run()

    def advance(self, micros: int) -> None:
        """Let system time pass; heartbeats that fall into it are sent, and idle operators ask for time."""
        self.batch()
        target = self.clock.now() + micros
        period = round(self.options.heartbeat * MICROS)
        while self.options.ets == "heartbeat" and self._next_beat <= target:
            self.clock.advance(max(0, self._next_beat - self.clock.now()))
            for group in self._groups.values():
                group.heartbeat()
            self._run()
            self._next_beat += period
        self.clock.advance(target - self.clock.now())
        self._next_beat = max(self._next_beat, self.clock.now() // period * period + period)
        self._run()

    def _source(self, name: str) -> StreamSource:
        definition = self.catalog.stream(name)
        return StreamSource(
            definition.schema,
            self.clock,
            watermark=definition.watermark,
            primary_key=definition.primary_key,
            max_skew=definition.max_skew,
            page_rows=self.options.page_rows,
        )

    def _ets(self, stream: str) -> Any:
        """How an idle source promises a timestamp."""
        return lambda: self._sources[stream].ets() if stream in self._sources else self.clock.now()

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

    def state_rows(self, name: str) -> int:
        """How many tuples the operators of a query hold, over all shards."""
        return sum(operator.state_rows() for operator in self.query(name).group.operators(name.lower()))

    def statistics(self, name: str) -> list[dict[str, NodeStatistics]]:
        """A reading of the operators that run a query (and those it shares the graph with), shard by shard."""
        return [graph.statistics() for graph in self.query(name).group.graphs]

    def counts(self, stream: str) -> dict[str, int]:
        source = self._sources[self._relation(stream)]
        return {"accepted": source.accepted, "late": source.late, "bad": source.bad}

    # --- checkpoint -----------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All state: statements, clock, sources, buffers, operators."""
        self.batch()
        return pickle.dumps(
            {
                "statements": list(self._statements.items()),
                "options": self.options.model_dump(),
                "now": self.clock.now(),
                "next_beat": self._next_beat,
                "anonymous": self._anonymous,
                "sources": {name: source.snapshot() for name, source in self._sources.items()},
                "tables": self._tables,
                "groups": {key: group.snapshot() for key, group in self._groups.items()},
                "outputs": {name: query.output.snapshot() for name, query in self.queries.items()},
            }
        )

    @classmethod
    def restore(cls, checkpoint: bytes) -> LocalMill:
        """A new mill that goes on where the snapshot was taken."""
        held = pickle.loads(checkpoint)
        mill = cls(Options(**held["options"]))
        mill.clock.advance(held["now"])
        for (_, name), text in held["statements"]:
            mill.execute(text)
            if name in mill._tables:
                mill._tables[name] = held["tables"][name]
        mill._next_beat, mill._anonymous = held["next_beat"], held["anonymous"]
        for name, values in held["sources"].items():
            mill._sources[name].restore(values)
        for key, values in held["groups"].items():
            if key in mill._groups:
                mill._groups[key].restore(values)
        for name, values in held["outputs"].items():
            mill.queries[name].output.restore(values)
        return mill
