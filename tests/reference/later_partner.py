"""Whether time excludes a partner for good: every time that a later tuple may have is tried."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from millstream.algebra.expression import Binary, Column, Expression, Literal
from millstream.algebra.schema import FOREVER, NEVER
from millstream.algebra.types import Type
from tests.reference.evaluate import evaluate

HORIZON = 200


def compared(left: str, op: str, right: str, later: int = 0) -> Expression:
    """The condition `left op right + later` on columns of whole numbers."""
    moved = Binary(Type.BIGINT, "+", Column(Type.BIGINT, right), Literal(Type.BIGINT, later))
    return Binary(Type.BOOLEAN, op, Column(Type.BIGINT, left), moved if later else Column(Type.BIGINT, right))


def excluded(
    row: dict[str, Any], time: str, bound: int, keys: Iterable[tuple[str, str]], condition: Expression | None
) -> bool:
    """Whether no tuple with a time of at least `bound`, in the column `time`, can be a partner. `keys` pairs columns of
    the row with equal ones. NULLs are not looked at: a tuple that has one there may stay."""
    if bound in (NEVER, FOREVER):
        return False
    if any(other == time and row[own] is not None and row[own] < bound for own, other in keys):
        return True
    if condition is None or time not in condition.columns() or not condition.columns() <= {*row, time}:
        return False
    if any(row[name] is None for name in condition.columns() - {time}):
        return False
    return not any(evaluate(condition, row | {time: at}) is True for at in range(bound, bound + HORIZON))
