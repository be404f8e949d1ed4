"""Queries over tables that are bound as other ones.

| written | bound as |
|---|---|
| `a UNION b` | `SELECT DISTINCT * FROM (a UNION ALL b)` |
| `a UNION ALL b ORDER BY … LIMIT …` | `SELECT * FROM (a UNION ALL b) ORDER BY … LIMIT …` |
| `a RIGHT JOIN b ON …` | `b LEFT JOIN a ON …`, with the columns of `*` in the order of the text |
| `SELECT x + 1 AS n … HAVING n > 2` | `… HAVING x + 1 > 2`, unless a table has a column n |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from millstream.algebra.program.query import Query
from millstream.algebra.schema import Attribute
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.logical.bind.coercion import cast, cast_text, common

_INSTEAD = {
    "INTERSECT": "SELECT DISTINCT … FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "EXCEPT": "SELECT DISTINCT … FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
}
_FULL = "a LEFT JOIN, UNION ALL the rows of the other table WHERE NOT EXISTS (SELECT 1 FROM a WHERE …)"

Member = tuple[Query, tuple[Attribute, ...]]
Part = TypeVar("Part")


def as_select(written: ast.SetOperation) -> ast.Select:
    """A SELECT with the rows of a set operation; PlanError if it is no union."""
    kind = written.op.split()[0]
    if kind != "UNION":
        raise PlanError("M3019", f"{written.op} is not available over tables", hint=_INSTEAD[kind], **written.place)
    place = written.place
    members = replace(written, op="UNION ALL", tail=())
    every = ast.SelectItem(ast.Star(**place), **place)
    source = ast.JoinedSource(ast.Source(members, "union", **place), **place)
    return ast.Select((every,), (source,), distinct=written.op == "UNION", tail=written.tail, **place)


def unified(members: Sequence[Member]) -> list[Member]:
    """The members of a union with columns of the same types; BindError if they have none in common."""
    columns = members[0][1]
    for _, other in members[1:]:
        if len(columns) != len(other):
            raise BindError("M2018", f"UNION of {len(columns)} and {len(other)} columns")
        mixed = []
        for mine, its in zip(columns, other, strict=True):
            type_ = common(mine.type, its.type)
            if type_ is None:
                message = f"UNION: column '{mine.name}' mixes {mine.type.value} and {its.type.value}"
                raise BindError("M2018", message, hint=cast_text(its.name, its.type, mine.type))
            mixed.append(replace(mine, type=type_))
        columns = tuple(mixed)
    types = [each.type for each in columns]
    return [(replace(query, items=tuple(map(cast, query.items, types))), columns) for query, _ in members]


def with_left_joins(select: ast.Select) -> ast.Select:
    """The query with a RIGHT JOIN of its first two tables turned round; PlanError for other joins that would keep rows
    of the table behind them."""
    for position, joined in enumerate(select.sources):
        if joined.kind == "FULL" or (joined.kind == "RIGHT" and position != 1):
            hint = _FULL if joined.kind == "FULL" else "begin FROM with this table, and LEFT JOIN the others"
            message = f"{joined.kind} JOIN is not available {'here' if joined.kind == 'RIGHT' else 'over tables'}"
            raise PlanError("M3020", message, hint=hint, **joined.place)
    if len(select.sources) < 2 or select.sources[1].kind != "RIGHT":
        return select
    first, second, *others = select.sources
    turned = (replace(second, kind="", on=None, using=()), replace(second, source=first.source, kind="LEFT"), *others)
    items = tuple(item for each in select.items for item in _in_order(each, select.sources))
    return replace(select, items=items, sources=turned)


def _in_order(item: ast.SelectItem, sources: Sequence[ast.JoinedSource]) -> Iterator[ast.SelectItem]:
    """`*` as the columns of each table, in the order of the text."""
    if not isinstance(item.expression, ast.Star) or item.expression.qualifier is not None:
        yield item
        return
    for joined in sources:
        source = joined.source
        name = source.alias or (source.relation if isinstance(source.relation, str) else "subquery")
        yield replace(item, expression=replace(item.expression, qualifier=name))


def without_aliases(node: Part, items: Sequence[ast.SelectItem], own: Collection[str]) -> Part:
    """An expression with the expressions that the aliases of the select list stand for. `own`: columns, which come
    first."""
    meant = {item.alias: item.expression for item in items if item.alias and item.alias not in own}

    def changed(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(changed, part))
        if not isinstance(part, ast.Node) or isinstance(part, ast.Query):
            return part
        if isinstance(part, ast.Name):
            return meant.get(str(part), part)
        return replace(part, **{each.name: changed(getattr(part, each.name)) for each in fields(part)})

    return changed(node)  # type: ignore[no-any-return]
