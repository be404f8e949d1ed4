"""Projection of punctuation, one at a time."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.expression import Column, Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import TS


def projected(
    pattern: Pattern, items: Sequence[tuple[str, Expression]], equal: Sequence[Sequence[str]] = ()
) -> Pattern | None:
    """The pattern over the output, or None if it restricts something that is not put out."""
    plain = [(name, item.name) for name, item in items if isinstance(item, Column) and item.name != TS]
    names = {}
    for column in pattern.attributes:
        alike = {column}.union(*(set(group) for group in equal if column in group))
        outputs = [name for name, source in plain if source in alike]
        if not outputs:
            return None
        names[column] = outputs[0]
    return pattern.rename(names)
