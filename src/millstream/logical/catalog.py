"""What is declared: streams, their companions, tables, derived streams.

Every base stream `s` has two companions that can be queried: `s__late` for tuples below a punctuation already seen, and
`s__bad` for input that does not fit the schema. Both are latent: nothing waits for their order.

Who reads a stream that another one closes reads it behind its closing; tuples that are late there come in `s__late`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import record
from millstream.errors import BindError, did_you_mean
from millstream.logical.nodes.closing import Closing
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.union import Union
from millstream.logical.plan import Plan

Definition = TypeVar("Definition")

LATE = "__late"
BAD = "__bad"
BAD_SCHEMA = Schema.of(("input", Type.VARCHAR), ("reason", Type.VARCHAR))


@record("closes")
class Closes:
    """CLOSES: after a tuple no tuple of `stream` comes whose `columns` have the values that it has in `by`."""

    stream: str
    columns: tuple[str, ...]
    by: tuple[str, ...]

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.columns, self.by, strict=True))


@record("stream_definition")
class StreamDefinition:
    """A base stream: its schema with the kind of time, and what its source promises.

    `watermark` is the delay of WATERMARK FOR and `max_skew` that of MAX SKEW, both in timestamp units. Each column of
    `ascending` never falls. `closes` are the streams that this one closes.
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

    @property
    def punctuated(self) -> frozenset[str]:
        """The columns that punctuation of this stream may restrict."""
        declared = frozenset(name for template in self.templates for name in template.attributes)
        return declared | set(self.primary_key) | set(self.ascending)

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that a tuple must have."""
        time = (self.schema.time,) if self.schema.time is not None else ()
        return (*time, *self.primary_key, *self.ascending)

    @property
    def moves(self) -> bool:
        """Whether its tuples bring their time with them, and time moves by the order or by punctuation."""
        schema = self.schema
        if schema.kind is not TimeKind.EXTERNAL or schema.time is None:
            return False
        return schema.ordered or Template(((schema.time, "+"),)) in self.templates


@dataclass(frozen=True, slots=True)
class TableDefinition:
    name: str
    schema: Schema
    options: Mapping[str, str] = field(default_factory=dict, hash=False)


class Catalog:
    """Names, case-insensitive, to what they stand for. Streams, tables and derived streams share one name space."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamDefinition] = {}
        self._tables: dict[str, TableDefinition] = {}
        self._derived: dict[str, Plan] = {}

    def add_stream(self, definition: StreamDefinition) -> None:
        self.check_free(definition.name)
        self._streams[definition.name] = definition

    def add_table(self, definition: TableDefinition) -> None:
        self.check_free(definition.name)
        self._tables[definition.name] = definition

    def add_derived(self, name: str, plan: Plan) -> None:
        """A stream that is the result of a query; whoever reads it reads the query's plan."""
        self.check_free(name.lower())
        self._derived[name.lower()] = plan

    def check_free(self, name: str) -> None:
        """Refuse a name that is taken, or that a companion stream has."""
        if name in self:
            raise BindError("M2010", f"'{name}' exists already", hint="DROP it first, or take another name")
        if name.endswith((LATE, BAD)):
            hint = f"Names that end in {LATE} and {BAD} belong to the companions of a stream."
            raise BindError("M2010", f"'{name}' is a reserved name", hint=hint)

    def __contains__(self, name: str) -> bool:
        return name in self._streams or name in self._tables or name in self._derived

    @property
    def streams(self) -> tuple[StreamDefinition, ...]:
        return tuple(self._streams.values())

    @property
    def tables(self) -> tuple[TableDefinition, ...]:
        return tuple(self._tables.values())

    @property
    def derived(self) -> Mapping[str, Plan]:
        return self._derived

    def stream(self, name: str) -> StreamDefinition:
        return _found(self._streams, name, "stream", self._streams)

    def table(self, name: str) -> TableDefinition:
        return _found(self._tables, name, "table", self._tables)

    def is_table(self, name: str) -> bool:
        return name.lower() in self._tables

    def plan(self, name: str) -> Plan:
        """The plan that reads a stream, a companion of one, or a derived stream."""
        name = name.lower()
        if name in self._derived:
            return self._derived[name]
        if name in self._streams:
            return self._closed(name)[-1]
        base, _, ending = name.rpartition("__")
        if base in self._streams and ending in ("late", "bad"):
            scan = Scan(name, self.companion_schema(base, ending))
            late = [replace(step, only_late=True) for step in self._closed(base) if isinstance(step, Closing)]
            return Union((scan, *late)) if late and ending == "late" else scan
        known = [*self._streams, *self._derived, *self._tables]
        raise BindError("M2002", f"unknown stream '{name}'", hint=did_you_mean(name, known))

    def _closed(self, name: str) -> list[Plan]:
        """The plans that read a stream: as it comes, then behind each stream that closes it, one over the other."""
        stream = self._streams[name]
        steps: list[Plan] = [Scan(name, stream.schema)]
        for other in self._streams.values():
            for clause in other.closes:
                if clause.stream == name:
                    merges = stream.moves and other.moves and stream.schema.unit == other.schema.unit
                    steps.append(Closing(steps[-1], self.plan(other.name), clause.keys, merges))
        return steps

    def companion_schema(self, base: str, ending: str) -> Schema:
        if ending == "bad":
            return BAD_SCHEMA
        schema = self._streams[base].schema
        return Schema(schema.attributes, TimeKind.LATENT)

    def punctuated(self, stream: str) -> frozenset[str]:
        """The columns that punctuation of a base stream may restrict; none for its companions."""
        return self._streams[stream].punctuated if stream in self._streams else frozenset()

    def drop(self, kind: str, name: str, *, if_exists: bool = False) -> bool:
        """Forget a stream (base or derived) or a table; false if there is none and that is allowed."""
        name = name.lower()
        places: list[dict[str, StreamDefinition] | dict[str, TableDefinition] | dict[str, Plan]]
        places = [self._tables] if kind.lower() == "table" else [self._streams, self._derived]
        for place in places:
            if name in place:
                self._check_unread(kind, name)
                del place[name]
                return True
        if if_exists:
            return False
        known = [existing for place in places for existing in place]
        raise BindError("M2002", f"unknown {kind.lower()} '{name}'", hint=did_you_mean(name, known))

    def forget(self, name: str) -> None:
        """Forget whatever has this name."""
        for place in (self._streams, self._tables, self._derived):
            place.pop(name, None)

    def _check_unread(self, kind: str, name: str) -> None:
        """Refuse to drop what a derived stream reads. (One derived stream holds the plan of another by value.)"""
        names = {name, name + LATE, name + BAD}
        for stream in self._streams.values():
            if any(clause.stream == name for clause in stream.closes):
                hint = f"DROP STREAM {stream.name} first"
                raise BindError("M2019", f"{kind.lower()} '{name}' is closed by stream '{stream.name}'", hint=hint)
        for reader, plan in self._derived.items():
            scanned = {getattr(node, "stream", None) or getattr(node, "table", None) for node in plan.walk()}
            if reader != name and scanned & names:
                hint = f"DROP STREAM {reader} first"
                raise BindError("M2019", f"{kind.lower()} '{name}' is read by stream '{reader}'", hint=hint)


def _found(place: Mapping[str, Definition], name: str, kind: str, known: Iterable[str]) -> Definition:
    made = place.get(name.lower())
    if made is None:
        raise BindError("M2002", f"unknown {kind} '{name}'", hint=did_you_mean(name, known))
    return made
