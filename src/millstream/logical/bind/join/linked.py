"""Refuses joins whose condition does not link the two sides, where one was written.

Such a join pairs every tuple with every other. `ON true`, `CROSS JOIN` and a comma without a condition ask for that.
A condition that compares a column with itself, and an ON that names columns of one side only, are mistakes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.algebra.expression import Binary, Column, Expression, Literal
from millstream.algebra.types import Type
from millstream.errors import PlanError
from millstream.lang import ast
from millstream.lang.spelling import spelled
from millstream.lang.tokens import Place
from millstream.logical.bind.join.conjunct_sets import aliases
from millstream.logical.bind.join.outer import OUTER
from millstream.logical.bind.scope import Entry

_COMPARED = ("=", "<>", "<", "<=", ">", ">=")

MEANT = Literal(Type.BOOLEAN, True)
"""ON true, alone or beside other conditions: all tuples are to be paired."""

Conditions = tuple[Expression, ...]


def check_linked(
    entries: tuple[Entry, ...],
    on: Mapping[str, Conditions],
    where: Iterable[tuple[ast.Expr, Expression]],
    sequence: ast.SequenceTest | None,
) -> None:
    """Refuse the first join whose condition links its entry with none before it. `where` has its conditions as written
    and bound."""
    where = tuple(where)
    for one, condition in where:
        _refuse_itself(condition, entries[:-1], entries[-1], one)
    inner = [condition for entry in entries if entry.written.kind not in OUTER for condition in on[entry.alias]]
    linked = [aliases(condition) for condition in (*inner, *(bound for _, bound in where))]
    linked += [frozenset(sequence.names)] if sequence is not None else []
    for position, entry in enumerate(entries):
        before, written, conditions = entries[:position], entry.written.on, on[entry.alias]
        names = frozenset[str]().union(*map(aliases, conditions))
        if written is None or not names or MEANT in conditions:
            continue
        for condition in conditions:
            _refuse_itself(condition, before, entry, written)
        if entry.alias in names and not _joins_streams(before, entry):
            continue  # a condition on a table alone selects its rows
        links = [aliases(condition) for condition in conditions] if entry.written.kind in OUTER else linked
        if not _reached(entry.alias, links) & {other.alias for other in before}:
            raise _unlinked(names, before, entry, written)


def _reached(alias: str, links: list[frozenset[str]]) -> frozenset[str]:
    """The aliases that conditions link with this one, directly or through others."""
    found, size = frozenset({alias}), 0
    while len(found) > size:
        size = len(found)
        found = found.union(*(names for names in links if names & found))
    return found


def _joins_streams(before: tuple[Entry, ...], entry: Entry) -> bool:
    return entry.plan is not None and any(other.plan is not None for other in before)


def _refuse_itself(condition: Expression, before: tuple[Entry, ...], entry: Entry, written: ast.Expr) -> None:
    """Refuse a comparison of a column with itself."""
    if not (isinstance(condition, Binary) and condition.op in _COMPARED and condition.left == condition.right):
        return
    column = condition.left
    if isinstance(column, Column) and "." in column.name:
        message = f"the condition of the join compares {column.name} with itself"
        raise PlanError("M3040", message, hint=_example(before, entry, column.name), **_start(written))


def _unlinked(names: frozenset[str], before: tuple[Entry, ...], entry: Entry, written: ast.Expr) -> PlanError:
    kind, alias = entry.written.kind, spelled(entry.alias)
    missing = " or ".join(other.alias for other in before) if entry.alias in names else entry.alias
    message = f"the condition of JOIN {alias} names no column of {missing}"
    every = f"{kind} JOIN {alias} ON true" if kind in OUTER else f"CROSS JOIN {alias}"
    return PlanError(
        "M3040", message, hint=f"ON {_example(before, entry)}; {every} pairs all tuples", **_start(written)
    )


def _example(before: tuple[Entry, ...], entry: Entry, compared: str = "") -> str:
    """A condition that links the entry with one before it, by columns of one name if there are any."""
    alias, _, column = compared.partition(".")
    both = [(other, name) for other in before for name in entry.visible if name in other.schema]
    both.sort(key=lambda pair: (pair[1] != column, pair[0].alias != alias, pair[1] == entry.schema.time))
    for other, name in both[:1]:
        return f"{spelled(other.alias)}.{spelled(name)} = {spelled(entry.alias)}.{spelled(name)}"
    return f"{spelled(before[-1].alias)}.… = {spelled(entry.alias)}.…"


def _start(written: ast.Expr) -> Place:
    """The position of the first word of a condition; that of a comparison is its operator's."""
    return min((node.place for node in written.walk()), key=lambda place: (place["line"], place["column"]))
