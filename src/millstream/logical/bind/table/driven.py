"""The stream that drives an UPDATE or DELETE, where the condition has it in place of FROM or USING.

| condition | means |
|---|---|
| `t.k IN (SELECT k FROM s …)` | USING (SELECT k FROM s …) … WHERE t.k = k |
| `EXISTS (SELECT … FROM s WHERE …)` | USING s WHERE … |

Only one condition of the statement may read a stream, connected with the others by AND.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.errors import PlanError
from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.table.ast import Write
from millstream.logical.bind.table.relations import relations
from millstream.logical.catalog import Catalog

_ALIAS = "__stream"


def driven(write: Write, catalog: Catalog) -> Write:
    """Return the statement with the stream of its condition as its source."""
    statement = write.statement
    if write.source is not None or not isinstance(statement, body.Update | body.Delete) or statement.where is None:
        return write
    parts = [*_conjuncts(statement.where)]
    reading = [part for part in parts if any(not catalog.is_table(name) for name in relations(part))]
    if not reading:
        return write
    source, condition = _source(reading[0])
    if len(reading) > 1:
        raise PlanError("M2123", "two conditions read streams", hint="name one in FROM or USING", **reading[1].place)
    kept = [part for part in parts if part is not reading[0]]
    kept += [] if condition is None else [condition]
    where: ast.Expr | None = None
    for part in kept:
        where = part if where is None else ast.Binary("AND", where, part, **part.place)
    return replace(write, statement=replace(statement, where=where), source=source)


def _conjuncts(node: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(node, ast.Binary) and node.op == "AND":
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _source(part: ast.Expr) -> tuple[ast.Source, ast.Expr | None]:
    """The source that a condition reads, and what remains of the condition."""
    match part:
        case body.InQuery(operand=operand, query=ast.Select(items=[item]) as query):
            named = replace(query, items=(replace(item, alias="value"),))
            value = ast.Name((_ALIAS, "value"), **part.place)
            return ast.Source(named, _ALIAS, **part.place), ast.Binary("=", operand, value, **part.place)
        case body.Exists(query=ast.Select(sources=[ast.JoinedSource(source=source)]) as query):
            if not (query.group or query.having or query.window or query.tail):
                return source, query.where
    hint = "write UPDATE … FROM s or DELETE … USING s, with the condition in WHERE"
    raise PlanError("M2123", "the condition reads a stream", hint=hint, **part.place)
