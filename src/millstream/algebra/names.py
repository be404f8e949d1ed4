"""Names of columns after joins and projections, shared by the planner and the workers.

A join prefixes each input's columns, and emits punctuation on a right key as punctuation on the equal left key. A
projection emits punctuation on the first output column that holds the restricted column, or one that a join made equal
to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.algebra.expression import Column, Expression, rewrite
from millstream.algebra.schema import TS, Schema

Groups = tuple[tuple[str, ...], ...]
"""Groups of columns that are equal in every tuple."""


def prefixed(name: str, prefix: str | None) -> str:
    return f"{prefix}.{name}" if prefix else name


def key_names(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Map each key to the first column that it equals; no two keys map to the same column.

    >>> key_names([("a", "x"), ("a", "y"), ("b", "x")])
    {'a': 'x'}
    """
    names: dict[str, str] = {}
    for own, other in pairs:
        if own not in names and other not in names.values():
            names[own] = other
    return names


def equal_classes(groups: Iterable[tuple[str, ...]]) -> Groups:
    """Merge groups that share a column; groups and columns keep the order of their first occurrence.

    >>> equal_classes([("a.k", "b.k"), ("a.m", "b.m"), ("b.k", "c.k")])
    (('a.k', 'b.k', 'c.k'), ('a.m', 'b.m'))
    """
    merged: list[list[str]] = []
    for group in groups:
        touching = [known for known in merged if set(known) & set(group)]
        names = dict.fromkeys([name for known in touching for name in known] + list(group))
        place = merged.index(touching[0]) if touching else len(merged)
        merged = [known for known in merged if known not in touching]
        merged.insert(min(place, len(merged)), list(names))
    return tuple(tuple(known) for known in merged)


def projected_names(items: Iterable[tuple[str, Expression]], schema: Schema, equal: Groups = ()) -> dict[str, str]:
    """Map each input column to the output column that carries its restrictions; columns without one are left out."""
    peers = {column: group for group in equal for column in group}
    names: dict[str, str] = {}
    for name, item in items:
        if isinstance(item, Column) and item.name in schema:
            for column in peers.get(item.name, (item.name,)):
                names.setdefault(column, name)
    return names


def renamed(condition: Expression, names: Mapping[str, str], schema: Schema) -> Expression:
    """Rename the condition's columns to columns of `schema` that hold the same values."""

    def change(part: Expression) -> Expression | None:
        if not isinstance(part, Column) or part.name == TS:
            return None
        name = names[part.name]
        return Column(schema.type_of(name), name)

    return rewrite(condition, change)
