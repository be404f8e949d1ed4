"""`ON a.ts / 10 = b.ts / 10`: equal expressions that rise with time are keys, computed below the join.

Each side then has a column for its expression, as if a subquery of FROM computed it, so that time closes the keys and
purges their tuples. Other expressions stay conditions: only the pairs of a join compute them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.algebra.expression import Binary, Column, Expression, rename
from millstream.algebra.monotone import monotone
from millstream.algebra.schema import TS
from millstream.logical.bind.computed import ComputedColumns
from millstream.logical.bind.join.conjunct_sets import aliases
from millstream.logical.plan import Plan


@dataclass(frozen=True, slots=True)
class KeySide:
    """One side of a join: its plan, with the columns computed for it; the aliases in it; the alias that its columns
    do not carry yet."""

    plan: Plan
    names: frozenset[str]
    prefix: str | None
    made: ComputedColumns = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "made", ComputedColumns(self.plan))

    def own(self, expression: Expression) -> Expression:
        """Return an expression of FROM over the plan's own names."""
        if self.prefix is None:
            return expression
        return rename(expression, {f"{self.prefix}.{name}": name for name in self.plan.schema.names})

    def rises(self, expression: Expression) -> bool:
        """True if it is computed and rises with a column that time closes."""
        follows = None if isinstance(expression, Column) else monotone(self.own(expression))
        return follows is not None and follows.rises and follows.column in self.plan.schema.trails

    def column(self, expression: Expression) -> str:
        return self.made.column(self.own(expression), "key")


def computed_keys(
    found: list[Expression], left: KeySide, right: KeySide
) -> tuple[tuple[tuple[str, str], ...], list[Expression]]:
    """Return the keys among the conjuncts that have to be computed, by their names in both plans, and the other
    conjuncts."""
    keys: list[tuple[str, str]] = []
    rest: list[Expression] = []
    for conjunct in found:
        pair = _sides(conjunct, left, right)
        if pair is None or not (left.rises(pair[0]) or right.rises(pair[1])):
            rest.append(conjunct)
        else:
            keys.append((left.column(pair[0]), right.column(pair[1])))
    return tuple(dict.fromkeys(keys)), rest


def _sides(conjunct: Expression, left: KeySide, right: KeySide) -> tuple[Expression, Expression] | None:
    """Return the expressions of both sides that an equality compares, if each reads one side."""
    if not (isinstance(conjunct, Binary) and conjunct.op == "=") or TS in conjunct.columns():
        return None
    one, other = conjunct.left, conjunct.right
    if one.type is not other.type and not (one.type.is_integer and other.type.is_integer):
        return None
    if not aliases(one) or not aliases(other):
        return None
    if aliases(one) <= left.names and aliases(other) <= right.names:
        return one, other
    return (other, one) if aliases(other) <= left.names and aliases(one) <= right.names else None
