"""Tables that always have exactly one row once INITIALIZE has run: their columns can be plain attributes.

Such a table has one INSERT, in INITIALIZE alone, of one row without a condition; no DELETE; and no statement before
the INSERT that uses it.
"""

from __future__ import annotations

from millstream.algebra.program.program import Program
from millstream.algebra.program.statement import Delete, Insert, Statement, queries


def one_row_tables(program: Program) -> frozenset[str]:
    return frozenset(table.name for table in program.tables if _is_one_row(table.name, program))


def _is_one_row(table: str, program: Program) -> bool:
    later = (*program.iterate, *program.terminate, *program.expire)
    if any(isinstance(statement, Insert | Delete) and statement.table == table for statement in later):
        return False
    for position, statement in enumerate(program.initialize):
        if isinstance(statement, Insert) and statement.table == table:
            rest = program.initialize[position + 1 :]
            again = any(isinstance(each, Insert | Delete) and each.table == table for each in rest)
            return not again and _is_plain(statement) and not _reads(statement, table)
        if statement.table == table or _reads(statement, table):
            return False
    return False


def _is_plain(statement: Insert) -> bool:
    """True if it inserts one row, whatever the tables hold."""
    (query, *others) = statement.queries
    return not others and not query.sources and query.condition is None and not query.aggregated and not query.limit


def _reads(statement: Statement, table: str) -> bool:
    return any(source.relation == table for query in queries(statement) for source in query.sources)
