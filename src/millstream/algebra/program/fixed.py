"""Tables whose number of rows is fixed once INITIALIZE has run: their values can be plain attributes.

Such a table has one INSERT, in INITIALIZE alone, of rows without a condition, which use no tables but those of one
row; no DELETE; and no statement before the INSERT that uses it. One of several rows has few of them, and no UPDATE of
it reads its other rows.
"""

from __future__ import annotations

from collections.abc import Set

from millstream.algebra.program.program import Program
from millstream.algebra.program.query import Query
from millstream.algebra.program.statement import RETURN, Delete, Insert, Statement, Update, queries

MOST = 8
"""Rows of a table that count as few."""


def one_row_tables(program: Program) -> frozenset[str]:
    return frozenset(name for name, insert in fixed_tables(program).items() if len(insert.queries) == 1)


def fixed_tables(program: Program) -> dict[str, Insert]:
    """The tables with a fixed number of rows, and the statement that inserts them, a query for each."""
    found: dict[str, Insert] = {}
    for statement in program.initialize:
        single = {name for name, insert in found.items() if len(insert.queries) == 1}
        if isinstance(statement, Insert) and statement.table not in (RETURN, *found):
            insert = _insert(statement.table, program, single)
            found |= {} if insert is None else {statement.table: insert}
    return found


def _insert(table: str, program: Program, single: Set[str]) -> Insert | None:
    """The statement that inserts all rows of a table. `single`: tables of one row that are filled before."""
    later = (*program.iterate, *program.terminate, *program.expire)
    if any(isinstance(statement, Insert | Delete) and statement.table == table for statement in later):
        return None
    for position, statement in enumerate(program.initialize):
        if isinstance(statement, Insert) and statement.table == table:
            rest = program.initialize[position + 1 :]
            again = any(isinstance(each, Insert | Delete) and each.table == table for each in rest)
            plain = all(_is_one_row(query, single) for query in statement.queries) and not _reads(statement, table)
            return statement if plain and not again and _is_few(statement, (*rest, *later)) else None
        if statement.table == table or _reads(statement, table):
            return None
    return None


def _is_one_row(query: Query, single: Set[str]) -> bool:
    """True if the query has one row, whatever the other tables hold."""
    cut = query.limit is not None or query.offset is not None
    plain = not (query.members or query.condition is not None or query.aggregated or cut)
    return plain and all(source.relation in single and not source.outer for source in query.sources)


def _is_few(insert: Insert, later: tuple[Statement, ...]) -> bool:
    updates = [each for each in later if isinstance(each, Update) and each.table == insert.table]
    alone = not any(_reads(update, insert.table) for update in updates)
    return len(insert.queries) == 1 or (len(insert.queries) <= MOST and alone)


def _reads(statement: Statement, table: str) -> bool:
    return any(source.relation == table for query in queries(statement) for source in query.sources)
