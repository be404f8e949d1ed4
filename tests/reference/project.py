"""Projection of punctuation, one at a time."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.expression import Column, Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction, compare
from millstream.algebra.schema import TS
from tests.reference.evaluate import evaluate

Rising = dict[str, tuple[str, Expression, bool]]
"""For a column, the output that rises with it, and whether it does so strictly."""


def projected(
    pattern: Pattern,
    items: Sequence[tuple[str, Expression]],
    equal: Sequence[Sequence[str]] = (),
    rising: Rising | None = None,
) -> Pattern | None:
    """The pattern over the output, or None if it restricts something that is not put out."""
    plain = [(name, item.name) for name, item in items if isinstance(item, Column) and item.name != TS]
    made = Pattern()
    for column, restriction in pattern.items:
        alike = {column}.union(*(set(group) for group in equal if column in group))
        outputs = [name for name, source in plain if source in alike]
        if outputs:
            made = made.intersect(Pattern.of({outputs[0]: restriction}))
            continue
        if rising is None or column not in rising:
            return None
        name, expression, strict = rising[column]
        moved = _moved(column, restriction, expression, strict)
        if moved is None:
            return None
        made = made.intersect(Pattern.of({name: moved}))
    return made


def _moved(column: str, restriction: Restriction, expression: Expression, strict: bool) -> Restriction | None:
    if restriction.simple is None:
        return None
    op, bound = restriction.simple
    if not strict:
        if op == "=":
            return None
        op = op[0]
    return compare(op, evaluate(expression, {column: bound}))
