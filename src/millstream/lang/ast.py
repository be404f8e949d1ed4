"""The syntax tree of statements, and with it that of the queries inside them (`tree.py`): `ast.Select` and
`ast.CreateStream` are read off one module."""

from __future__ import annotations

from dataclasses import field

from millstream.lang.names import quoted
from millstream.lang.tree import (
    Between,
    Binary,
    Case,
    Cast,
    Constant,
    Denoising,
    Duration,
    Emit,
    Expr,
    Extract,
    Function,
    InList,
    Instrumenting,
    JoinedSource,
    Name,
    Node,
    OverClause,
    Pacing,
    Query,
    Runs,
    Select,
    SelectItem,
    SequenceTest,
    SetOperation,
    SortKey,
    Source,
    Star,
    Tail,
    TypedConstant,
    TypeName,
    Unary,
    WindowClause,
    Work,
    Write,
)


class Statement(Node):
    text: str = field(default="", compare=False, repr=False, kw_only=True)


class Created(Statement):
    """A CREATE statement; `unless_exists` with IF NOT EXISTS."""

    name: str
    unless_exists: bool = field(default=False, kw_only=True)


class FeedbackStatement(Statement):
    """`FEEDBACK query ~[…]`; `where` has the position of the feedback."""

    query: str
    feedback: str
    where: Node


class AlterQuery(Statement):
    """`ALTER QUERY query EMIT EARLY AT 60 %`."""

    query: str
    emit: Emit


class ColumnDefinition(Node):
    name: str
    type_name: TypeName
    required: bool = False
    """True with NOT NULL."""


class Watermark(Node):
    """`WATERMARK FOR name AS name - delay`."""

    name: str
    delay: Duration | None = None


class References(Node):
    """`column REFERENCES stream (key)`, or `FOREIGN KEY (columns) REFERENCES stream (key)`; without `key`, the primary
    key of the stream."""

    columns: tuple[str, ...]
    stream: str
    key: tuple[str, ...] = ()


class Closes(Node):
    """`CLOSES stream (columns) BY (by)`, or with the name of the closing stream, `BY closing (by)`."""

    stream: str
    columns: tuple[str, ...]
    by: tuple[str, ...]
    closing: str | None = None


Options = tuple[tuple[str, str], ...]


class CreateStream(Created):
    columns: tuple[ColumnDefinition, ...]
    order_by: str | None = None
    current_time: bool = False
    max_skew: Duration | None = None
    watermark: Watermark | None = None
    punctuated_on: tuple[tuple[tuple[str, str], ...], ...] = ()
    every: tuple[tuple[int, Duration], ...] = ()
    """The period of some of `punctuated_on`, by position."""
    primary_key: tuple[str, ...] = ()
    options: Options = ()
    ascending: tuple[str, ...] = ()
    closes: tuple[Closes, ...] = ()
    references: tuple[References, ...] = ()
    mentions: tuple[Name, ...] = field(default=(), compare=False, repr=False)
    """The columns that the clauses name, with their positions."""


class CreateDerivedStream(Created):
    select: Query
    options: Options = ()


class CreateTable(Created):
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...] = ()
    options: Options = ()


STARTS = ("now", "beginning", "shared")
"""What a query that is added sees: the tuples accepted from now on, all that its streams can be read again for, or
what an equal running query holds."""


class Start(Node):
    """`WITH (start = 'now')`: one of `STARTS`."""

    how: str = "now"


NOW = Start()


class CreateQuery(Created):
    select: Runs
    into: str | None = None
    into_options: Options = ()
    start: Start = field(default_factory=Start)
    body: str = field(default="", compare=False, repr=False, kw_only=True)
    """The text from SELECT on, with the sink."""


class SelectStatement(Statement):
    select: Runs
    into: str | None = None
    into_options: Options = ()

    @property
    def start(self) -> Start:
        return Start(**self.place)

    @property
    def body(self) -> str:
        return self.text


def query_text(name: str, statement: CreateQuery | SelectStatement, how: str) -> str:
    """The CREATE QUERY statement for a query under another name, or with another start."""
    options = "" if how == "now" else f" WITH (start = '{how}')"
    return f"CREATE QUERY {quoted(name)}{options} AS {statement.body}"


class Drop(Statement):
    kind: str
    name: str
    if_exists: bool = False


class Explain(Statement):
    """`stage` is LOGICAL, OPTIMIZED, PHYSICAL, CONTRACT or FEEDBACK."""

    stage: str
    statement: SelectStatement | CreateQuery | CreateDerivedStream


class ExplainNamed(Statement):
    """EXPLAIN of a running query or a derived stream, by name; `stage` is OPTIMIZED, PHYSICAL, CONTRACT or
    FEEDBACK."""

    name: str
    stage: str = "CONTRACT"


class Show(Statement):
    """`what` is STREAMS, TABLES, QUERIES, FUNCTIONS or AGGREGATES."""

    what: str


class SetOption(Statement):
    name: str
    value: int | float | str | bool


__all__ = [
    "NOW",
    "STARTS",
    "AlterQuery",
    "Between",
    "Binary",
    "Case",
    "Cast",
    "Closes",
    "ColumnDefinition",
    "Constant",
    "CreateDerivedStream",
    "CreateQuery",
    "CreateStream",
    "CreateTable",
    "Created",
    "Denoising",
    "Drop",
    "Duration",
    "Emit",
    "Explain",
    "ExplainNamed",
    "Expr",
    "Extract",
    "FeedbackStatement",
    "Function",
    "InList",
    "Instrumenting",
    "JoinedSource",
    "Name",
    "Node",
    "Options",
    "OverClause",
    "Pacing",
    "Query",
    "References",
    "Runs",
    "Select",
    "SelectItem",
    "SelectStatement",
    "SequenceTest",
    "SetOperation",
    "SetOption",
    "Show",
    "SortKey",
    "Source",
    "Star",
    "Start",
    "Statement",
    "Tail",
    "TypeName",
    "TypedConstant",
    "Unary",
    "Watermark",
    "WindowClause",
    "Work",
    "Write",
    "query_text",
]
