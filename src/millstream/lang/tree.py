"""The syntax tree of queries, before names are resolved: frozen values with positions.

Comparisons ignore positions, so equal texts are equal values at any position. Names are in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, dataclass_transform

from millstream.algebra.types import MICROS
from millstream.algebra.values import fields_of
from millstream.errors import MillstreamError
from millstream.lang.tokens import Place


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _Frozen:
    """Turns every subclass into a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Node(_Frozen):
    line: int = field(default=1, compare=False, repr=False, kw_only=True)
    column: int = field(default=1, compare=False, repr=False, kw_only=True)

    def children(self) -> Iterator[Node]:
        """The direct children, in the order of the text."""
        for name in fields_of(type(self)):  # type: ignore[arg-type]
            yield from _nodes(getattr(self, name))

    def walk(self) -> Iterator[Node]:
        """The node and all nodes below it."""
        yield self
        for child in self.children():
            yield from child.walk()

    @property
    def place(self) -> Place:
        return {"line": self.line, "column": self.column}

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Give errors raised inside the position of this node, unless they have one."""
        try:
            yield
        except MillstreamError as error:
            raise error.at(self.line, self.column) from None


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _nodes(part)


# --- expressions ------------------------------------------------------------------------------------------------------


class Expr(Node):
    pass


class Name(Expr):
    """A column, optionally with the alias of its stream: `price`, `b.price`."""

    parts: tuple[str, ...]
    quoted: bool = field(default=False, compare=False, repr=False)
    """True if a part was written in double quotes."""

    def __str__(self) -> str:
        return ".".join(self.parts)


class Star(Expr):
    """`*` or `b.*` in a select list."""

    qualifier: str | None = None


class Constant(Expr):
    """A number, a string, TRUE, FALSE or NULL."""

    value: int | float | str | bool | None


class TypedConstant(Expr):
    """`TIMESTAMP '…'`, `DATE '…'`: a string read as a value of the type."""

    type_name: str
    text: str


class Duration(Expr):
    """`INTERVAL '5' SECOND`, in a window also `5 SECONDS`, or a plain number (`unit` is None)."""

    amount: Fraction
    unit: str | None = None
    seconds: Fraction = Fraction(1)
    """Length of one `unit`; 1 for a plain number, which counts seconds or the units of BIGINT time."""

    @property
    def total(self) -> Fraction:
        return self.amount * self.seconds

    @property
    def micros(self) -> Fraction:
        return self.total * MICROS

    def __str__(self) -> str:
        return f"{float(self.amount):g}" + (f" {self.unit}" if self.unit else "")


class Unary(Expr):
    op: str
    operand: Expr


class Binary(Expr):
    op: str
    left: Expr
    right: Expr


class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr


class InList(Expr):
    operand: Expr
    options: tuple[Expr, ...]


class Case(Expr):
    operand: Expr | None
    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


class TypeName(Node):
    """A type as written: upper case, without its length or precision."""

    name: str


class Cast(Expr):
    operand: Expr
    type_name: TypeName


class OverClause(Node):
    """`OVER (PARTITION BY … ORDER BY … ROWS n PRECEDING SLIDE n)`: the window of a running aggregate.

    `unit` is ROWS or RANGE. ROWS has `rows`, RANGE has `range`; neither: UNBOUNDED PRECEDING. With ROWS, `slide` counts
    tuples. `framed`: the frame was written."""

    partition: tuple[Expr, ...] = ()
    order: Expr | None = None
    unit: str = "RANGE"
    rows: int | None = None
    range: Duration | None = None
    slide: Duration | None = None
    active: bool = False
    framed: bool = False


class Function(Expr):
    """A scalar or aggregate function by its lower-case name; `star` for `COUNT(*)`. `within`: the expression of
    `WITHIN GROUP (ORDER BY …)`; `filter`: the condition of `FILTER (WHERE …)`; `over`: the window of a running
    aggregate."""

    name: str
    arguments: tuple[Expr, ...] = ()
    distinct: bool = False
    star: bool = False
    within: Expr | None = None
    filter: Expr | None = None
    over: OverClause | None = None


class Extract(Expr):
    part: str
    operand: Expr


class SequenceTest(Expr):
    """`SEQ(a, b) MODE RECENT`: b arrived after a."""

    names: tuple[str, ...]
    mode: str


# --- queries ----------------------------------------------------------------------------------------------------------


class WindowClause(Node):
    """`[RANGE d SLIDE d]`, `[ROWS n]`, `[NOW]` (`now`), `[UNBOUNDED]` (nothing set), each with an optional `ON col`."""

    range: Duration | None = None
    slide: Duration | None = None
    rows: int | None = None
    now: bool = False
    attribute: str | None = None
    function: str | None = None
    """TUMBLE or HOP, if the window was written as one."""
    key_join: bool = False
    """True with KEY JOIN: each tuple of the stream is in one result at most."""


class Denoising(Node):
    """`DENOISE(TABLE s, DESCRIPTOR(k, …), range, threshold[, EAGER | LAZY | UNORDERED])`."""

    key: tuple[str, ...]
    range: Duration
    threshold: int
    mode: str


class Instrumenting(Node):
    """`INSTRUMENT(TABLE s, feedback, every | ONCE[, PROPAGATE ON | OFF])`; `every` is None with ONCE."""

    feedback: str
    every: int | None
    sends: bool


class Work(Node):
    """`EXPENSIVE(TABLE s, expression AS name, budget => n[, guard => FALSE][, aside => n][, shed => TRUE])`."""

    expression: Expr
    name: str
    budget: int
    guard: bool = True
    aside: int | None = None
    shed: bool = False


class Source(Node):
    """One entry of FROM: a relation by name or a subquery, its alias and window."""

    relation: str | Select | SetOperation
    alias: str | None = None
    window: WindowClause | None = None
    probing: bool = False
    """True if the window was written `OVER (… PRECEDING)`: sources without a window only probe it."""
    denoising: Denoising | None = None
    work: Work | None = None
    instrument: Instrumenting | None = None
    arguments: tuple[Expr, ...] | None = None
    """The arguments of a table function, whose name is `relation`; None: the relation is not called."""

    @property
    def function(self) -> str | None:
        """The function over the relation, which only a stream can have; None: there is none."""
        given = {"DENOISE": self.denoising, "EXPENSIVE": self.work, "INSTRUMENT": self.instrument}
        return next((name for name, clause in given.items() if clause is not None), None)


class JoinedSource(Node):
    """A source and its join with those before it; `kind` is '', CROSS, INNER, LEFT, RIGHT or FULL. `issues`: THRIFTY or
    IMPATIENT, if the join tells its inputs what it finds out."""

    source: Source
    kind: str = ""
    on: Expr | None = None
    using: tuple[str, ...] = ()
    issues: str = ""


class SelectItem(Node):
    expression: Expr
    alias: str | None = None


class SortKey(Node):
    expression: Expr
    descending: bool = False
    nulls_first: bool = False


class Tail(Node):
    """ORDER BY with its keys, LIMIT or OFFSET with its amount. Only queries over tables sort and skip rows: the binder
    refuses ORDER BY and OFFSET in a continuous query, with a hint."""

    clause: str
    keys: tuple[SortKey, ...] = ()
    amount: Expr | None = None


class Pacing(Tail):
    """`WITH PACE ON MAX(a.ts, b.ts) 1 MINUTE [FEEDBACK OFF]`: the columns, and the lateness that is allowed."""

    columns: tuple[Name, ...] = ()
    tolerance: Duration = Duration(Fraction(0))
    feedback: bool = True


class Emit(Tail):
    """`EMIT EARLY [AT p % | EVERY d | d BEFORE END | WITH ACCURACY p %] [BY SYSTEM TIME] [QUALITY f] [PRODDED BY s]`:
    early answers are asked for, and perhaps when the query prods itself, which function tells how good they were, and
    the stream whose tuples prod it."""

    percent: Fraction | None = None
    every: Duration | None = None
    before: Duration | None = None
    accuracy: Fraction | None = None
    system: bool = False
    quality: str = ""
    prodder: str = ""


class Select(Node):
    items: tuple[SelectItem, ...]
    sources: tuple[JoinedSource, ...]
    where: Expr | None = None
    window: WindowClause | None = None
    group: tuple[Expr, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    tail: tuple[Tail, ...] = ()


class SetOperation(Node):
    """`left op right`; `op` is UNION ALL, or UNION, INTERSECT, EXCEPT, which continuous queries do not support."""

    op: str
    left: Select | SetOperation
    right: Select | SetOperation
    tail: tuple[Tail, ...] = ()


Query = Select | SetOperation


class Write(Node):
    """A statement that writes a table, once or for each tuple of a stream (`table.ast`)."""


Runs = Query | Write
"""What a query may run."""
