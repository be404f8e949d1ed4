"""Tables whose number of rows is fixed once INITIALIZE has run: their values can be plain attributes.

Such a table has one INSERT, in INITIALIZE alone, of rows without a condition; no DELETE; and no statement before the
INSERT that uses it. One of several rows has few of them, and no UPDATE of it reads its other rows.
"""

from __future__ import annotations

from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Query
from millstream.algebra.program.statement import Delete, Insert, Statement, Update, queries

MOST = 8
"""Rows of a table that count as few."""


def one_row_tables(program: Program) -> frozenset[str]:
    return frozenset(name for name, insert in fixed_tables(program).items() if len(insert.queries) == 1)


def fixed_tables(program: Program) -> dict[str, Insert]:
    """The tables with a fixed number of rows, and the statement that inserts them, a query for each."""
    found = {table.name: _insert(table.name, program) for table in program.tables}
    return {name: insert for name, insert in found.items() if insert is not None}


def _insert(table: str, program: Program) -> Insert | None:
    later = (*program.iterate, *program.terminate, *program.expire)
    if any(isinstance(statement, Insert | Delete) and statement.table == table for statement in later):
        return None
    for position, statement in enumerate(program.initialize):
        if isinstance(statement, Insert) and statement.table == table:
            rest = program.initialize[position + 1 :]
            again = any(isinstance(each, Insert | Delete) and each.table == table for each in rest)
            plain = all(map(_is_one_row, statement.queries)) and not _reads(statement, table)
            return statement if plain and not again and _is_few(statement, (*rest, *later)) else None
        if statement.table == table or _reads(statement, table):
            return None
    return None


def _is_one_row(query: Query) -> bool:
    """True if the query has one row, whatever the tables hold."""
    cut = query.limit is not None or query.offset is not None
    return not (query.members or query.sources or query.condition is not None or query.aggregated or cut)


def _is_few(insert: Insert, later: tuple[Statement, ...]) -> bool:
    updates = [each for each in later if isinstance(each, Update) and each.table == insert.table]
    alone = not any(_reads(update, insert.table) for update in updates)
    return len(insert.queries) == 1 or (len(insert.queries) <= MOST and alone)


def _reads(statement: Statement, table: str) -> bool:
    return any(source.relation == table for query in queries(statement) for source in query.sources)
