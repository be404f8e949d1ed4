"""The order of the clauses of a query. WHERE, WINDOW and GROUP BY may stand in any order, as in NiagaraST."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.lang.cursor import Cursor
from millstream.lang.emit import at_emit
from millstream.lang.pacing import at_pacing

_AFTER_FROM = ("WINDOW", "WHERE", "GROUP BY", "HAVING")
_TAIL = ("ORDER BY", "WITH PACE", "EMIT EARLY", "LIMIT", "OFFSET")
_RANKS = {"WHERE": 0, "GROUP BY": 0, "HAVING": 2, "ORDER BY": 3, "WITH PACE": 3, "EMIT EARLY": 3, "LIMIT": 4}
_HINT = "the order is WHERE, GROUP BY, HAVING, ORDER BY or EMIT EARLY, LIMIT"


def next_clause(cursor: Cursor, before: Iterable[str]) -> str | None:
    """The clause that begins here, None if none does; raise SqlSyntaxError if it is among those before it, or follows
    one that it stands before."""
    clause, before = _clause(cursor), [*before]
    if clause is None:
        return None
    if clause in before:
        cursor.error("M1007", f"{clause} appears twice")
    later = [each for each in before if _follows(each, clause)]
    if later:
        cursor.error("M1001", f"{clause} must stand before {later[0]}", hint=_HINT)
    return clause


def _clause(cursor: Cursor) -> str | None:
    if at_pacing(cursor):
        return "WITH PACE"
    if at_emit(cursor):
        return "EMIT EARLY"
    word = cursor.token.upper
    clauses = (each for each in (*_AFTER_FROM, *_TAIL) if each not in ("WITH PACE", "EMIT EARLY"))
    return next((each for each in clauses if each.partition(" ")[0] == word), None)


def _follows(clause: str, other: str) -> bool:
    """Return whether a clause belongs behind another."""
    if other == "WINDOW":
        return clause in _TAIL
    return _RANKS.get(clause, 0) > _RANKS.get(other, 4)
