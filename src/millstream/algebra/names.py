"""Names of columns on their way through joins and projections.

Planner and workers agree on these: a join puts each input's columns out under the input's prefix, and punctuation on a
right key on the equal left one; a projection puts punctuation out on the first output column that holds the restricted
one, or one that a join made equal to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.algebra.expression import Column, Expression, rewrite
from millstream.algebra.schema import TS, Schema

Groups = tuple[tuple[str, ...], ...]
"""Columns that are equal in every tuple, group by group."""


def prefixed(name: str, prefix: str | None) -> str:
    return f"{prefix}.{name}" if prefix else name


def key_names(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each key the first column that it equals; two keys that equal one column do not both stand for it.

    >>> key_names([("a", "x"), ("a", "y"), ("b", "x")])
    {'a': 'x'}
    """
    made: dict[str, str] = {}
    for own, other in pairs:
        if own not in made and other not in made.values():
            made[own] = other
    return made


def equal_classes(groups: Iterable[tuple[str, ...]]) -> Groups:
    """Groups of equal columns; those that share a column become one, in the order in which they are met.

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
    """Input column → the output column on which a restriction of it is emitted; columns without one are left out."""
    first: dict[str, str] = {}
    position: dict[str, int] = {}
    for place, (name, item) in enumerate(items):
        position[name] = place
        if isinstance(item, Column) and item.name in schema:
            first.setdefault(item.name, name)
    made = dict(first)
    for group in equal:
        kept = [first[column] for column in group if column in first]
        if kept:
            made |= dict.fromkeys(group, min(kept, key=lambda name: position[name]))
    return made


def renamed(condition: Expression, names: Mapping[str, str], schema: Schema) -> Expression:
    """The condition over other columns, of this schema, that hold the same values."""

    def change(part: Expression) -> Expression | None:
        if not isinstance(part, Column) or part.name == TS:
            return None
        name = names[part.name]
        return Column(schema.type_of(name), name)

    return rewrite(condition, change)
