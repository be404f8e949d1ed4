"""Which tuples an operator's inputs may omit, if some of its results are not wanted.

An input may omit a tuple if all results that the tuple takes part in are unwanted, and no other result changes without
it. These are the tuples that a condition on the result, tested below the operator instead of above it, would drop. So
the answer of a node to `push` answers this too: its unwanted results are those for which a condition over the
restricted columns is false. A restriction of a computed column has no counterpart below.

What each node does about it is in its rules (`Plan.rules`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.expression import Call, Column, Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import ANY, Restriction
from millstream.algebra.schema import TS
from millstream.algebra.types import Type

if TYPE_CHECKING:
    from millstream.logical.plan import Conditions, Plan

Omitted = tuple[Pattern | None, ...]
"""For each input, the tuples that it may omit; None: no tuples."""
_WANTED = "WANTED"
"""The function of a condition that is false for the unwanted results."""


def omitted(plan: Plan, pattern: Pattern) -> Omitted:
    """Return the tuples that each input may omit if no result that matches the pattern is wanted."""
    if not pattern.items:  # a node must not conclude from a lost restriction that nothing is wanted
        return (None,) * len(plan.inputs)
    columns = tuple(Column(plan.schema.type_of(name), name) for name, _ in pattern.items)
    below = plan.push((Call(Type.BOOLEAN, _WANTED, columns),)).below
    return tuple(_restricted(conditions, pattern) for conditions in below[: len(plan.inputs)])


def _restricted(conditions: Conditions, pattern: Pattern) -> Pattern | None:
    """Return the pattern under the names that the condition has below, if it is tested there."""
    for condition in conditions:
        if isinstance(condition, Call) and condition.function == _WANTED:
            return _renamed(condition.arguments, pattern)
    return None


def _renamed(columns: tuple[Expression, ...], pattern: Pattern) -> Pattern | None:
    found: dict[str, Restriction] = {}
    for column, (_, restriction) in zip(columns, pattern.items, strict=True):
        if not isinstance(column, Column) or column.name == TS:
            return None
        found[column.name] = found.get(column.name, ANY).intersect(restriction)
    below = Pattern.of(found)
    return None if below.is_empty or not below.items else below
