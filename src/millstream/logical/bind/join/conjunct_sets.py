"""Conjuncts of WHERE and ON, each of which waits for the lowest join that has all its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millstream.algebra.expression import Binary, Cast, Column, Expression, conjuncts, rename
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type


@dataclass(frozen=True, slots=True)
class Placed:
    """The conditions of one join: pairs of equal columns, and the rest."""

    keys: tuple[tuple[str, str], ...]
    residual: tuple[Expression, ...]


def aliases(expression: Expression) -> frozenset[str]:
    """Return the aliases whose columns the expression reads; the hidden timestamp belongs to the whole result."""
    return frozenset(name.split(".", 1)[0] for name in expression.columns())


class Conjuncts:
    """Conjuncts not yet placed."""

    def __init__(self) -> None:
        self._waiting: list[Expression] = []

    def add(self, predicate: Expression | None) -> None:
        self._waiting += conjuncts(predicate)

    def take(self, left: frozenset[str], right: frozenset[str]) -> list[Expression]:
        """Remove and return those that read both sides and nothing else."""
        return self._take(lambda reads: bool(reads <= left | right and reads & left and reads & right))

    def take_within(self, names: frozenset[str]) -> list[Expression]:
        """Remove and return those that read only these aliases, and at least one of them."""
        return self._take(lambda reads: bool(reads) and reads <= names)

    def take_constant(self) -> list[Expression]:
        """Remove and return those that read no alias."""
        return self._take(lambda reads: not reads)

    def _take(self, wanted: Callable[[frozenset[str]], bool]) -> list[Expression]:
        found = [c for c in self._waiting if wanted(aliases(c))]
        self._waiting = [c for c in self._waiting if c not in found]
        return found

    def rest(self) -> tuple[Expression, ...]:
        return tuple(self._waiting)


class EqualKeys:
    """Keys that joins have made equal: the left key replaces the right one. `same` has pairs of one type. Integers of
    different widths replace each other only in equalities with further columns."""

    def __init__(self) -> None:
        self.same: dict[str, str] = {}
        self._equal: dict[str, str] = {}

    def add(self, keys: Sequence[tuple[str, str]], schema: Schema) -> None:
        """Add pairs that are equal in all rows of the schema."""
        self._equal |= {other: one for one, other in keys}
        self.same |= {other: one for one, other in keys if schema.type_of(one) is schema.type_of(other)}

    def renamed(self, found: list[Expression]) -> list[Expression]:
        """Return the conditions with each replaced key renamed."""
        return [rename(conjunct, self._equal if _is_equality(conjunct) else self.same) for conjunct in found]


def split_keys(found: list[Expression], left: frozenset[str], right: frozenset[str]) -> Placed:
    """Split conjuncts into keys, which are equalities of plain columns as (left, right), and the residual.

    Columns of different types stay residual, because their values are equal only after a cast; integers of any width
    are keys.
    """
    keys: list[tuple[str, str]] = []
    residual: list[Expression] = []
    for conjunct in found:
        pair = _key(conjunct, left, right)
        if pair is None:
            residual.append(conjunct)
        elif pair not in keys:
            keys.append(pair)
    return Placed(tuple(keys), tuple(residual))


def _key(conjunct: Expression, left: frozenset[str], right: frozenset[str]) -> tuple[str, str] | None:
    if not (isinstance(conjunct, Binary) and conjunct.op == "="):
        return None
    one, other = _widened(conjunct.left), _widened(conjunct.right)
    if not (isinstance(one, Column) and isinstance(other, Column)) or TS in (one.name, other.name):
        return None
    if one.type is not other.type and not (one.type.is_integer and other.type.is_integer):
        return None
    if aliases(one) <= left and aliases(other) <= right:
        return one.name, other.name
    if aliases(other) <= left and aliases(one) <= right:
        return other.name, one.name
    return None


def _is_equality(conjunct: Expression) -> bool:
    """True if the conjunct equates two plain columns."""
    return (
        isinstance(conjunct, Binary)
        and conjunct.op == "="
        and all(isinstance(_widened(side), Column) for side in (conjunct.left, conjunct.right))
    )


def _widened(expression: Expression) -> Expression:
    """Return the operand of a cast from INT to BIGINT; any other expression is unchanged."""
    if isinstance(expression, Cast) and expression.type is Type.BIGINT and expression.operand.type is Type.INT:
        return expression.operand
    return expression
