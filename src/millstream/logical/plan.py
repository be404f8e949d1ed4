"""The logical plan: frozen nodes; schema and stream properties are derived, never stored.

Equal sub-plans are equal values, which is how queries that start alike share operators. Columns inside a plan have the
names of their stream; a join prefixes each side's columns with its alias (`a.price`) unless the side is itself a join.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from millstream.algebra.expression import Column, Expression
from millstream.algebra.schema import Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import value

WINDOW_START = "window_start"
WINDOW_END = "window_end"


@value("window")
@dataclass(frozen=True, slots=True)
class Window:
    """A window on one join input: `range` in timestamp units, or `rows`, or neither: unbounded.

    `rows = 0` keeps nothing: tuples of that side only probe (asymmetric join).
    """

    range: int | None = None
    rows: int | None = None

    def __str__(self) -> str:
        if self.rows is not None:
            return f"[ROWS {self.rows}]"
        return "[UNBOUNDED]" if self.range is None else f"[RANGE {self.range}]"


UNBOUNDED = Window()


@dataclass(frozen=True, slots=True)
class Plan(ABC):
    def __init_subclass__(cls) -> None:
        """Every node is a value. Its name is the class's `stem`, or follows from that of the class."""
        value(cls.__dict__.get("stem") or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower())(cls)

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The schema of the output, derived from the inputs'."""

    @property
    def inputs(self) -> tuple[Plan, ...]:
        found: list[Plan] = []
        for part in fields(self):
            value = getattr(self, part.name)
            found += [p for p in (value if isinstance(value, tuple) else (value,)) if isinstance(p, Plan)]
        return tuple(found)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """The same node over other inputs, given in the order of `inputs`."""
        left = list(inputs)
        changed: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, Plan):
                changed[part.name] = left.pop(0)
            elif isinstance(value, tuple) and any(isinstance(item, Plan) for item in value):
                changed[part.name] = tuple(left.pop(0) for _ in value)
        return replace(self, **changed)

    def walk(self) -> Iterator[Plan]:
        """All nodes, inputs before the nodes that read them."""
        for plan in self.inputs:
            yield from plan.walk()
        yield self


@dataclass(frozen=True, slots=True)
class Scan(Plan):
    """All tuples of a stream, under the stream's own column names."""

    stream: str
    stream_schema: Schema

    @property
    def schema(self) -> Schema:
        return self.stream_schema


@dataclass(frozen=True, slots=True)
class Select(Plan):
    input: Plan
    predicate: Expression

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True)
class Project(Plan):
    """Named expressions over the input's columns (and its hidden timestamp, as the column `__ts`)."""

    input: Plan
    items: tuple[tuple[str, Expression], ...]

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        attributes = tuple(Attribute(name, expression.type) for name, expression in self.items)
        time = next((n for n, e in self.items if isinstance(e, Column) and e.name == source.time), None)
        return replace(source, attributes=attributes, time=time if source.time is not None else None)


@dataclass(frozen=True, slots=True)
class Union(Plan):
    """Timestamp-ordered union of inputs that agree in types; the names are the first input's."""

    members: tuple[Plan, ...]

    @property
    def schema(self) -> Schema:
        first = self.members[0].schema
        schemas = [member.schema for member in self.members]
        kind = TimeKind.LATENT if any(s.kind is TimeKind.LATENT for s in schemas) else first.kind
        position = first.index(first.time) if first.time else None
        same = position is not None and all(s.time and s.index(s.time) == position for s in schemas)
        moves, time = all(s.moves for s in schemas), first.time if same else None
        return replace(first, kind=kind, time=time, ordered=kind is not TimeKind.LATENT, moves=moves)


@dataclass(frozen=True, slots=True)
class Distinct(Plan):
    input: Plan

    @property
    def schema(self) -> Schema:
        return self.input.schema


def joined(left: Schema, right: Schema, left_prefix: str | None, right_prefix: str | None) -> tuple[Attribute, ...]:
    """The attributes of a join's output: the left's, then the right's, each under its prefix."""
    return tuple(
        Attribute(f"{prefix}.{a.name}" if prefix else a.name, a.type)
        for schema, prefix in ((left, left_prefix), (right, right_prefix))
        for a in schema
    )


def in_time(schemas: Iterable[Schema], windows: Iterable[Window]) -> bool:
    """Whether a join can work in the order of time: its inputs come in order, or, as a window that counts rows needs
    it, they can be put in order."""
    counts = any(window.rows for window in windows)
    return all(s.kind is not TimeKind.LATENT and (s.ordered or (counts and s.moves)) for s in schemas)


@dataclass(frozen=True, slots=True)
class WindowJoin(Plan):
    """Symmetric join: equality on `keys` (pairs of left and right input columns), `residual` over output columns."""

    left: Plan
    right: Plan
    left_window: Window
    right_window: Window
    keys: tuple[tuple[str, str], ...] = ()
    residual: Expression | None = None
    left_prefix: str | None = None
    right_prefix: str | None = None

    @property
    def merges(self) -> bool:
        """Whether it processes in timestamp order (both inputs `in_time`, some window); otherwise on arrival."""
        windows = self.left_window, self.right_window
        return windows != (UNBOUNDED, UNBOUNDED) and in_time((self.left.schema, self.right.schema), windows)

    @property
    def schema(self) -> Schema:
        left, right = self.left.schema, self.right.schema
        return replace(
            left,
            attributes=joined(left, right, self.left_prefix, self.right_prefix),
            time=None,
            ordered=self.merges,
            moves=left.moves and right.moves,
        )


@dataclass(frozen=True, slots=True)
class TableJoin(Plan):
    """A stream joined with a static table: every tuple probes, nothing is kept."""

    input: Plan
    table: str
    table_schema: Schema
    keys: tuple[tuple[str, str], ...] = ()
    residual: Expression | None = None
    stream_prefix: str | None = None
    table_prefix: str | None = None
    outer: bool = False

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        attributes = joined(source, self.table_schema, self.stream_prefix, self.table_prefix)
        time = source.time
        if time is not None and self.stream_prefix:
            time = f"{self.stream_prefix}.{time}"
        return replace(source, attributes=attributes, time=time)


@dataclass(frozen=True, slots=True)
class Sequence(Plan):
    """`second` paired with an earlier `first`: RECENT (the latest) or CHRONICLE (the earliest unused)."""

    first: Plan
    second: Plan
    mode: str
    keys: tuple[tuple[str, str], ...] = ()
    residual: Expression | None = None
    first_prefix: str | None = None
    second_prefix: str | None = None

    @property
    def schema(self) -> Schema:
        first, second = self.first.schema, self.second.schema
        attributes = joined(first, second, self.first_prefix, self.second_prefix)
        time = second.time
        if time is not None and self.second_prefix:
            time = f"{self.second_prefix}.{time}"
        return replace(second, attributes=attributes, time=time, ordered=True)


@value("aggregate_call")
@dataclass(frozen=True, slots=True)
class AggregateCall:
    """COUNT, SUM, AVG, MIN or MAX of an input column (None: COUNT(*)), under an output name."""

    name: str
    function: str
    argument: str | None
    type: Type

    def __str__(self) -> str:
        return f"{self.function}({'*' if self.argument is None else self.argument}) AS {self.name}"

    @property
    def partials(self) -> tuple[Attribute, ...]:
        """The mergeable columns that a pane ships for this call: AVG ships its sum and its count."""
        if self.function == "AVG":
            return (Attribute(f"{self.name}__sum", Type.DOUBLE), Attribute(f"{self.name}__count", Type.BIGINT))
        return (Attribute(self.name, self.type),)


def end_type(source: Schema, attribute: str | None) -> Type:
    """The type of window ends: that of the windowing attribute, or of the stream's time."""
    whole = source.unit == 1 if attribute is None else source.type_of(attribute).is_integer
    return Type.BIGINT if whole else Type.TIMESTAMP


@dataclass(frozen=True, slots=True)
class WindowAggregate(Plan):
    """Grouped aggregates per window `[end - range, end)`, ends at multiples of `slide`.

    `range is None`: no window, a group's row appears when punctuation closes the group. `attribute` is the windowing
    attribute (the hidden timestamp by default); its bound comes from progress of time or from punctuation on it.
    Output: `window_start`, `window_end` (if there is a window), the group columns, the aggregates. With `over_panes`
    the input is a PaneAggregate of the same calls and groups, whose partial results are merged. With `partials` the
    input is made of partial results of the same calls and groups, by pane, as sources make them of their tuples.
    """

    input: Plan
    range: int | None
    slide: int | None
    group: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    attribute: str | None = None
    over_panes: bool = False
    partials: bool = field(default=False, repr=False)

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        kind = end_type(source, self.attribute)
        ends = (Attribute(WINDOW_START, kind), Attribute(WINDOW_END, kind)) if self.range is not None else ()
        groups = tuple(Attribute(name, source.type_of(name)) for name in self.group)
        values = tuple(Attribute(call.name, call.type) for call in self.aggregates)
        by_time = self.range is not None and self.attribute is None
        time, ordered, moves = WINDOW_END if by_time else None, source.ordered and by_time, source.moves and by_time
        return replace(source, attributes=ends + groups + values, time=time, ordered=ordered, moves=moves)


PANE_END = "pane_end"


@dataclass(frozen=True, slots=True)
class PaneAggregate(Plan):
    """The lower level of a paned window aggregate: tumbling panes of length gcd(range, slide), partial results. With
    `partials` it merges such results, as sources make them of their tuples."""

    input: Plan
    pane: int
    group: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    attribute: str | None = None
    partials: bool = field(default=False, repr=False)

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        kind = end_type(source, self.attribute)
        groups = tuple(Attribute(name, source.type_of(name)) for name in self.group)
        partials = tuple(partial for call in self.aggregates for partial in call.partials)
        time = PANE_END if self.attribute is None else None
        return replace(source, attributes=(Attribute(PANE_END, kind), *groups, *partials), time=time)
