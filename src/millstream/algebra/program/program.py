"""A user-defined aggregate: its arguments, results, local tables and blocks.

| block | runs |
|---|---|
| initialize | for the first tuple of a partition |
| iterate | for each later tuple |
| terminate | at the end of the tuples, with the arguments of the last one; a base version that has it is blocking |
| expire | for a tuple that leaves the window; window versions only |
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.algebra.identity import digest
from millstream.algebra.program.expression import Argument, Oldest, walk
from millstream.algebra.program.statement import INWINDOW, RETURN, Insert, Statement, all_expressions, queries
from millstream.algebra.schema import Attribute
from millstream.algebra.values import record


@record("local_table")
class LocalTable:
    name: str
    columns: tuple[Attribute, ...]


@record("program")
class Program:
    """`inwindow` has the names of the window's columns, and the types of the arguments. `window`: the window version.
    `algebraic`: the aggregate of the aggregates of parts is that of the whole. `ignore_nulls`: it is not called for a
    tuple with a NULL among the arguments."""

    name: str
    arguments: tuple[Attribute, ...]
    results: tuple[Attribute, ...]
    tables: tuple[LocalTable, ...]
    initialize: tuple[Statement, ...]
    iterate: tuple[Statement, ...]
    terminate: tuple[Statement, ...] = ()
    expire: tuple[Statement, ...] = ()
    inwindow: tuple[str, ...] = ()
    window: bool = False
    algebraic: bool = False
    ignore_nulls: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def blocking(self) -> bool:
        """True if it returns something only at the end of its input."""
        return bool(self.terminate)

    @property
    def statements(self) -> Iterator[Statement]:
        yield from (*self.initialize, *self.iterate, *self.terminate, *self.expire)

    @property
    def last_arguments(self) -> tuple[int, ...]:
        """The positions of the arguments that TERMINATE uses: they are those of the last tuple that was taken."""
        found = (node for each in self.terminate for part in all_expressions(each) for node in walk(part))
        names = {node.name for node in found if isinstance(node, Argument)}
        return tuple(at for at, argument in enumerate(self.arguments) if argument.name in names)

    @property
    def reads_window(self) -> bool:
        """True if a statement uses inwindow; if not, only the arguments of expiring tuples are of interest."""
        return any(_reads_window(statement) for statement in self.statements)

    @property
    def deletes_from_window(self) -> bool:
        return any(statement.table == INWINDOW for statement in self.statements)

    @property
    def returns_on_expiry(self) -> bool:
        return any(isinstance(statement, Insert) and statement.table == RETURN for statement in self.expire)

    @property
    def digest(self) -> str:
        return digest(self)


def _reads_window(statement: Statement) -> bool:
    if statement.table == INWINDOW:
        return True
    if any(source.relation == INWINDOW for query in queries(statement) for source in query.sources):
        return True
    return any(isinstance(node, Oldest) for part in all_expressions(statement) for node in walk(part))
