"""The catalog: declared streams, their companions, tables, derived streams.

Every base stream `s` has two companions that can be queried: `s__late` for tuples below a punctuation already seen, and
`s__bad` for input that does not fit the schema. Both are latent: nothing waits for their order. A derived stream may
have a companion `d__bad` for rows whose computed values do not fit.

A query reads a stream that another stream closes through a Closing node; tuples late there appear in `s__late`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from millstream.algebra.aggregate import functions
from millstream.algebra.program.program import Program
from millstream.algebra.punctuation.template import SINGLE, UP_TO, Template
from millstream.algebra.python.definition import Declaration
from millstream.algebra.python.library import LIBRARY, Library
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.stream_id import StreamId
from millstream.algebra.types import Type
from millstream.algebra.values import record
from millstream.errors import BindError, did_you_mean
from millstream.lang import ast
from millstream.lang.spelling import spelled
from millstream.logical import library
from millstream.logical.nodes.closing import Closing
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.nodes.union import Union
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Plan

Definition = TypeVar("Definition")

BAD_SCHEMA = Schema.of(("input", Type.VARCHAR), ("reason", Type.VARCHAR))


@record("closes")
class Closes:
    """CLOSES: after a tuple, `stream` has no more tuples whose `columns` equal the tuple's columns `by`."""

    stream: str
    columns: tuple[str, ...]
    by: tuple[str, ...]

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.columns, self.by, strict=True))


@record("references")
class References:
    """REFERENCES: each value of `columns` comes in the primary key of `stream`, sooner or later; `key` has its columns
    in the same order."""

    columns: tuple[str, ...]
    stream: str
    key: tuple[str, ...]


@record("stream_definition")
class StreamDefinition:
    """A base stream: its schema with the kind of time, and the promises of its source.

    `watermark` is the delay of WATERMARK FOR and `max_skew` that of MAX SKEW, both in timestamp units. The columns of
    `ascending` never fall. `closes` are the streams that this one closes. The columns of `not_null` have NOT NULL.
    `periods` are those of templates with EVERY, in microseconds of the clock: a tuple is matched within this time.
    `references` are its foreign keys.
    """

    name: str
    schema: Schema
    watermark: int | None = None
    max_skew: int | None = None
    templates: tuple[Template, ...] = ()
    primary_key: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    ascending: tuple[str, ...] = ()
    closes: tuple[Closes, ...] = ()
    not_null: tuple[str, ...] = ()
    periods: tuple[tuple[Template, int], ...] = ()
    references: tuple[References, ...] = ()

    @property
    def id(self) -> StreamId:
        return StreamId.of(self.name)

    @property
    def sent(self) -> tuple[Template, ...]:
        """The templates whose punctuation comes with the stream; a watermark is derived from its tuples."""
        derived = None if self.watermark is None else Template(((str(self.schema.time), "+"),))
        return tuple(template for template in self.templates if template != derived)

    @property
    def promised(self) -> tuple[Template, ...]:
        """The templates of its punctuation, whether it is sent or derived from its tuples. Any stream may send bounds
        on its time."""
        rising = dict.fromkeys((*self.ascending, *((self.schema.time,) if self.schema.time else ())))
        key = (Template(tuple((name, SINGLE) for name in self.primary_key)),) if self.primary_key else ()
        found = (*self.templates, *(Template(((name, UP_TO),)) for name in rising), *key)
        return tuple(dict.fromkeys(found))

    @property
    def punctuated(self) -> frozenset[str]:
        """The columns that punctuation of this stream may restrict."""
        declared = frozenset(name for template in self.templates for name in template.attributes)
        return declared | set(self.primary_key) | set(self.ascending)

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that a tuple must have."""
        time = (self.schema.time,) if self.schema.time is not None else ()
        return tuple(dict.fromkeys((*time, *self.primary_key, *self.ascending, *self.not_null)))

    @property
    def named(self) -> tuple[str, ...]:
        """The other streams that its declaration names."""
        found = (*(clause.stream for clause in self.closes), *(clause.stream for clause in self.references))
        return tuple(name for name in dict.fromkeys(found) if name != self.name)

    @property
    def moves(self) -> bool:
        """True if its tuples carry their time, and the order or punctuation moves it."""
        schema = self.schema
        promised = schema.ordered or Template(((str(schema.time), "+"),)) in self.templates
        return schema.kind is TimeKind.EXTERNAL and schema.time is not None and promised


@dataclass(frozen=True, slots=True)
class TableDefinition:
    name: str
    schema: Schema
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    primary_key: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()
    partitioned: bool = False
    """True if its rows are spread over shards by its key while streams write it."""


@dataclass(frozen=True, slots=True)
class UserAggregate:
    """A user-defined aggregate: its base version, its window version, or both."""

    base: Program | None = None
    window: Program | None = None

    @property
    def versions(self) -> tuple[Program, ...]:
        return tuple(program for program in (self.base, self.window) if program is not None)


@dataclass(frozen=True, slots=True)
class View:
    """A view over tables alone; with `arguments`, a table function."""

    query: ast.Query
    arguments: tuple[ast.ColumnDefinition, ...] | None = None


class Catalog:
    """Case-insensitive names and their definitions. Streams, tables and derived streams share one name space."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamDefinition] = {}
        self._tables: dict[str, TableDefinition] = {}
        self._derived: dict[str, Plan] = {}
        self._bad: dict[str, Plan] = {}
        self._written: dict[str, WrittenTable] = {}
        """The tables that streams write, or have written."""
        self._writings = 0
        """Number of tables that streams have begun to write."""
        self._views: dict[str, View] = {}
        """The views over tables alone, and table functions; other views are derived streams."""
        self.library = Library(LIBRARY)
        """The functions and aggregates written in Python."""
        self.replaying = False
        """True while the statements of a checkpoint run again: what was accepted once is not refused later."""
        self.aggregates: dict[str, UserAggregate] = {}
        """User-defined aggregates; they hide built-in functions of the same name."""

    def add_stream(self, definition: StreamDefinition) -> None:
        self.check_free(definition.name)
        self._streams[definition.name] = definition

    def add_table(self, definition: TableDefinition) -> None:
        self.check_free(definition.name)
        self._tables[definition.name] = definition

    def new_written(self, table: TableDefinition, unit: int) -> WrittenTable:
        """A table that streams are about to write, in the unit of their time."""
        return WrittenTable(table.name, table.schema, table.primary_key, unit, self._writings, table.partitioned)

    def add_writer(self, write: TableWrite) -> None:
        """Note that a table is written from now on."""
        if write.table not in self._written:
            self._written[write.table] = write.target
            self._writings += 1

    def written(self, name: str) -> WrittenTable | None:
        """The table of this name if streams write it, or have written it."""
        return self._written.get(name.lower())

    def add_view(self, name: str, view: View) -> None:
        """Add a view over tables alone, or a table function; queries that read it read the query's tables."""
        self.check_free(name)
        self._views[name] = view

    @property
    def views(self) -> tuple[tuple[str, View], ...]:
        """The views over tables alone, and the table functions."""
        return tuple(self._views.items())

    def view(self, name: str) -> View | None:
        """A view over tables alone, or a table function."""
        return self._views.get(name.lower())

    def table_function(self, name: str) -> View | None:
        found = self.view(name)
        return None if found is None or found.arguments is None else found

    def add_derived(self, name: str, plan: Plan, bad: Plan | None = None) -> None:
        """Add a stream that is the result of a query; its readers read the query's plan. `bad` is the plan of its
        companion `name__bad`, if it has one."""
        self.check_free(name.lower())
        self._derived[name.lower()] = plan
        if bad is not None:
            self._bad[name.lower()] = bad

    def add_aggregate(self, program: Program) -> None:
        """Add the base or the window version of an aggregate; both have the same arguments and results."""
        known = self.aggregates.get(program.name, UserAggregate())
        kind = "window aggregate" if program.window else "aggregate"
        if (known.window if program.window else known.base) is not None:
            hint = f"DROP AGGREGATE {spelled(program.name)} first, or take another name"
            raise BindError("M2010", f"{kind} '{program.name}' exists already", hint=hint)
        for other in known.versions:
            alike = [[a.type for a in each.arguments] + [r.type for r in each.results] for each in (program, other)]
            if alike[0] != alike[1]:
                message = f"the two versions of '{program.name}' have different arguments or results"
                raise BindError("M2049", message)
        field = "window" if program.window else "base"
        self.aggregates[program.name] = replace(known, **{field: program})

    def user_defined(self, name: str) -> UserAggregate | Declaration | None:
        """A user-defined aggregate, or a function or aggregate written in Python; it hides what is built in."""
        return self.aggregates.get(name) or self.library.find(name)

    def _drop_aggregate(self, name: str, *, if_exists: bool = False) -> bool:
        """Drop both versions of an aggregate; queries that call it keep what they have."""
        if self.aggregates.pop(name, None) is not None:
            return True
        if not if_exists:
            hint = did_you_mean(name, self.aggregates)
            if functions.find(name) is not None or name in library.names():
                hint = "it is built in; an aggregate of your own with that name hides it"
            raise BindError("M2049", f"unknown aggregate '{name}'", hint=hint)
        return False

    def check_free(self, name: str) -> None:
        """Refuse a name that is taken or reserved for companion streams."""
        if name in self:
            raise BindError("M2010", f"'{name}' exists already", hint="DROP it first, or take another name")
        if StreamId.of(name).companion:
            hint = "Names that end in __late and __bad belong to the companions of a stream."
            raise BindError("M2010", f"'{name}' is a reserved name", hint=hint)

    def __contains__(self, name: str) -> bool:
        return any(name in place for place in (self._streams, self._tables, self._derived, self._views))

    @property
    def streams(self) -> tuple[StreamDefinition, ...]:
        return tuple(self._streams.values())

    @property
    def tables(self) -> tuple[TableDefinition, ...]:
        return tuple(self._tables.values())

    @property
    def derived(self) -> Mapping[str, Plan]:
        return self._derived

    def diverts(self, name: str) -> bool:
        """Return whether a derived stream has a companion for rows whose values do not fit."""
        return name in self._bad

    def stream(self, name: str) -> StreamDefinition:
        return _find(self._streams, name, "stream")

    def table(self, name: str) -> TableDefinition:
        return _find(self._tables, name, "table")

    def is_table(self, name: str) -> bool:
        return name.lower() in self._tables

    def plan(self, name: str) -> Plan:
        """Return the plan that reads a stream, a companion of one, or a derived stream."""
        name = name.lower()
        if name in self._derived:
            return self._derived[name]
        if name in self._streams:
            return self._closed(name)[-1]
        base, companion = StreamId.of(name).source, StreamId.of(name).companion
        if base in self._bad and companion == "bad":
            return self._bad[base]
        if base in self._streams and companion:
            latent = Schema(self._streams[base].schema.attributes, TimeKind.LATENT)
            scan = Scan(name, BAD_SCHEMA if companion == "bad" else latent)
            late = [replace(step, only_late=True) for step in self._closed(base) if isinstance(step, Closing)]
            return Union((scan, *late)) if late and companion == "late" else scan
        known = [*self._streams, *self._derived, *self._tables]
        hint = did_you_mean(name, known) or "there is no stream yet: CREATE STREAM …"
        raise BindError("M2002", f"unknown stream '{name}'", hint=hint)

    def _closed(self, name: str) -> list[Plan]:
        """Return the plans that read a stream: the scan, then one Closing over the other for each closing stream."""
        stream = self._streams[name]
        steps: list[Plan] = [Scan(name, stream.schema, stream.promised)]
        for other in self._streams.values():
            for clause in other.closes:
                if clause.stream == name:
                    merges = stream.moves and other.moves and stream.schema.unit == other.schema.unit
                    steps.append(Closing(steps[-1], self.plan(other.name), clause.keys, merges))
        return steps

    def punctuated(self, stream: str) -> frozenset[str]:
        """Return the columns that punctuation of a base stream may restrict; none for its companions."""
        return self._streams[stream].punctuated if stream in self._streams else frozenset()

    def drop(self, kind: str, name: str, *, if_exists: bool = False) -> bool:
        """Drop a stream (base or derived), a table or an aggregate; return False if there is none and `if_exists`."""
        name = name.lower()
        if kind.lower() == "aggregate":
            return self._drop_aggregate(name, if_exists=if_exists)
        places: list[dict[str, Any]] = _PLACES[kind.lower()](self)
        for place in places:
            if name in place:
                self._check_unread(kind, name)
                del place[name]
                self._bad.pop(name, None)
                self._written.pop(name, None)
                return True
        if if_exists:
            return False
        known = [existing for place in places for existing in place]
        raise BindError("M2002", f"unknown {kind.lower()} '{name}'", hint=did_you_mean(name, known))

    def forget(self, name: str) -> None:
        """Remove the definition of this name, if there is one."""
        for place in (self._streams, self._tables, self._derived, self._bad, self._written, self._views):
            place.pop(name, None)

    def check_undeclared(self, kind: str, name: str) -> None:
        """Refuse to drop a name that the declaration of another stream closes or refers to."""
        for stream in self._streams.values():
            for done, clauses in (("closed", stream.closes), ("referenced", stream.references)):
                if stream.name != name and any(clause.stream == name for clause in clauses):
                    hint = f"DROP STREAM {spelled(stream.name)} first"
                    raise BindError("M2019", f"{kind.lower()} '{name}' is {done} by stream '{stream.name}'", hint=hint)

    def _check_unread(self, kind: str, name: str) -> None:
        """Refuse to drop a name that is declared or read elsewhere. (A derived stream holds the plan of another by
        value.)"""
        self.check_undeclared(kind, name)
        names = {name, StreamId.of(name).late, StreamId.of(name).bad}
        for reader, plan in self._derived.items():
            scanned = {getattr(node, "stream", None) or getattr(node, "table", None) for node in plan.walk()}
            if reader != name and scanned & names:
                hint = f"DROP STREAM {spelled(reader)} first"
                raise BindError("M2019", f"{kind.lower()} '{name}' is read by stream '{reader}'", hint=hint)


_PLACES: dict[str, Callable[[Catalog], list[dict[str, Any]]]] = {
    "stream": lambda catalog: [catalog._streams, catalog._derived],
    "table": lambda catalog: [catalog._tables],
    "view": lambda catalog: [catalog._views, catalog._derived],
    "function": lambda catalog: [catalog._views],
}
"""Where each kind of relation is found to be dropped."""


def _find(place: Mapping[str, Definition], name: str, kind: str) -> Definition:
    definition = place.get(name.lower())
    if definition is None:
        raise BindError("M2002", f"unknown {kind} '{name}'", hint=did_you_mean(name, place))
    return definition
