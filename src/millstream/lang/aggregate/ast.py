"""The syntax tree of user-defined aggregates: declarations, blocks and the statements inside them."""

from __future__ import annotations

from dataclasses import field

from millstream.lang import ast

STATES = ("INITIALIZE", "ITERATE", "TERMINATE", "EXPIRE")
"""The events to which a block responds."""
RETURN = "return"
"""The table whose rows are the results."""
INWINDOW = "inwindow"
"""The table of the tuples in the window, which the system maintains."""


# --- expressions that only bodies have --------------------------------------------------------------------------------


class Subquery(ast.Expr):
    """`(SELECT …)` as a value: its only column, of its first row; NULL if there is none."""

    query: ast.Query


class Exists(ast.Expr):
    query: ast.Query


class InQuery(ast.Expr):
    """`operand IN (SELECT …)`."""

    operand: ast.Expr
    query: ast.Query


class Oldest(ast.Expr):
    """`oldest().column`, or `oldest()` if inwindow has one column."""

    name: str | None = None


# --- statements of a block --------------------------------------------------------------------------------------------


class Local(ast.Node):
    """A statement of a block; `table` is the table that it changes."""

    table: str


class Insert(Local):
    """`INSERT INTO table [(columns)] VALUES … [WHERE condition]`, or the rows of a query."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[ast.Expr, ...], ...] = ()
    where: ast.Expr | None = None
    query: ast.Query | None = None


class Assignment(ast.Node):
    column_name: str
    value: ast.Expr


class Update(Local):
    assignments: tuple[Assignment, ...]
    where: ast.Expr | None = None


class Delete(Local):
    where: ast.Expr | None = None


# --- declarations -----------------------------------------------------------------------------------------------------


class Block(ast.Node):
    """Statements that run at one event, or at several: `INITIALIZE: ITERATE: { … }`."""

    states: tuple[str, ...]
    statements: tuple[Local, ...]


class LocalTable(ast.Node):
    name: str
    columns: tuple[ast.ColumnDefinition, ...]


class CreateAggregate(ast.Created):
    """`results` has one column without a name for `: type`, or the columns of `: (a INT, b REAL)`."""

    arguments: tuple[ast.ColumnDefinition, ...]
    results: tuple[ast.ColumnDefinition, ...]
    tables: tuple[LocalTable, ...]
    blocks: tuple[Block, ...]
    window: bool = False
    algebraic: bool = False
    ignore_nulls: bool = field(default=False, kw_only=True)


# --- calls ------------------------------------------------------------------------------------------------------------


class UserCall(ast.Function):
    """A function of a query that the binder has found to be a user-defined aggregate.

    `versions` are its versions in the catalog, and `result` the position of the result column that is meant."""

    versions: object = field(default=None, compare=False, repr=False, kw_only=True)
    required: object = field(default=None, compare=False, repr=False, kw_only=True)
    """The columns that are never NULL, by stream."""
    result: int = field(default=0, kw_only=True)
