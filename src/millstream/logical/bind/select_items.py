"""The items of a select list as they are written, for errors about the columns that they make."""

from __future__ import annotations

from millstream.lang import ast


def item_of_each(query: ast.Query, width: int) -> tuple[ast.SelectItem | None, ...]:
    """The item that makes each of the columns of a query, of a union those of the first member; None if it is not
    known."""
    while isinstance(query, ast.SetOperation):
        query = query.left
    items: list[ast.SelectItem | None] = []
    stars = [item for item in query.items if isinstance(item.expression, ast.Star)]
    for item in query.items:
        copies = width - len(query.items) + 1 if len(stars) == 1 and item is stars[0] else 1
        items += [item] * copies
    return tuple(items) if len(items) == width else (None,) * width
