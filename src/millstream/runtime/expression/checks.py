"""Checks that the values which an operator computes fit their types.

A page whose columns span too little for an overflow is not examined further (`Ranges`). On any other page the rows are
checked, and the first row that uses a value that does not fit raises OutOfRange, which names the operator of the
expression and the values of its columns.

>>> from millstream.algebra.expression import Binary, Literal
>>> from millstream.algebra.types import Type
>>> twice = Binary(Type.BIGINT, "*", Column(Type.BIGINT, "x"), Literal(Type.BIGINT, 2))
>>> Checks(None, [twice]).verify(pl.DataFrame({"x": [1, 2**62]}))
Traceback (most recent call last):
millstream.errors.OutOfRange: (x * 2) does not fit BIGINT with x = 4611686018427387904
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.expression import Case, Column, Expression, conjuncts
from millstream.algebra.ranges import Range, Ranges, always_fits
from millstream.algebra.schema import TS
from millstream.algebra.types import format_value
from millstream.errors import OutOfRange
from millstream.runtime.expression.evaluate import to_polars
from millstream.runtime.expression.overflow import EXCEEDS, overflows, row_overflows

_FAILS = "__fails"


class Checks:
    """The checks of a condition, and of items that are used where the condition is true."""

    def __init__(self, condition: Expression | None, items: Iterable[Expression] = ()) -> None:
        candidates = conjuncts(condition), tuple(items)
        self._tests, self._items = (tuple(e for e in expressions if not always_fits(e)) for expressions in candidates)
        self._fails: pl.Expr | None = None
        if self._tests or self._items:
            fails = row_overflows(condition, self._items, to_polars)
            self._fails = None if fails is None else fails.alias(_FAILS)

    def verify(self, rows: pl.DataFrame) -> None:
        """Raise OutOfRange if a row uses a value that does not fit."""
        fails = self.failing(rows)
        if fails is not None:
            at = int(fails.argmax())
            raise _out_of_range((*self._tests, *self._items), rows.slice(at, 1))

    def failing(self, rows: pl.DataFrame) -> Mask | None:
        """Return the mask of the rows that use a value that does not fit; None if there are none."""
        if self._fails is None or not rows.height or self._is_safe(rows):
            return None
        fails = rows.with_columns(self._fails).get_column(_FAILS)
        return fails.to_numpy() if fails.any() else None

    def _is_safe(self, rows: pl.DataFrame) -> bool:
        """Return whether the values of the columns exclude an overflow."""
        known: dict[str, Range] = {}

        def of_column(found: Column) -> Range:
            name = found.name
            if name not in known:
                column = rows.get_column(name).cast(pl.Int64)
                low, high = column.min(), column.max()
                known[name] = (int(low), int(high)) if isinstance(low, int) and isinstance(high, int) else (0, 0)
            return known[name]

        ranges = Ranges(of_column)
        for expression in (*self._tests, *self._items):
            ranges.of(expression)
        return ranges.fit


def rows_using(rows: pl.DataFrame, column: str, condition: Expression | None, items: Sequence[Expression]) -> pl.Series:
    """Return a mask of the rows that use a marked value of a column, in the condition or in items where it is true."""
    used = row_overflows(condition, items, to_polars, (column,))
    if used is None:
        return pl.repeat(False, rows.height, dtype=pl.Boolean, eager=True)
    return rows.select(used.alias(_FAILS) & pl.col(EXCEEDS + column)).to_series()


def _out_of_range(expressions: Iterable[Expression], row: pl.DataFrame) -> OutOfRange:
    node = next(_culprit(expression, row) for expression in expressions if _fails(expression, row))
    columns = {column.name: column for column in _columns(node)}
    values = ", ".join(f"{_name(column)} = {_value(column, row)}" for column in columns.values())
    return OutOfRange(f"{node} does not fit {node.type.value}{f' with {values}' if values else ''}")


def _culprit(expression: Expression, row: pl.DataFrame) -> Expression:
    """Return the operator inside the expression whose result, which the row uses, does not fit."""
    if isinstance(expression, Case):
        for condition, value in expression.branches:
            if _fails(condition, row):
                return _culprit(condition, row)
            if row.select(to_polars(condition)).item():
                return _culprit(value, row)
        assert expression.otherwise is not None
        return _culprit(expression.otherwise, row)
    for child in expression.children():
        if _fails(child, row):
            return _culprit(child, row)
    return expression


def _fails(expression: Expression, row: pl.DataFrame) -> bool:
    fails = overflows(expression, to_polars)
    return fails is not None and bool(row.select(fails).item())


def _columns(node: Expression) -> Iterable[Column]:
    if isinstance(node, Column):
        yield node
    for child in node.children():
        yield from _columns(child)


def _name(column: Column) -> str:
    return "current_time" if column.name == TS else str(column)


def _value(column: Column, row: pl.DataFrame) -> str:
    try:
        return format_value(row.select(to_polars(column)).item())
    except (ValueError, OverflowError):  # a time that Python cannot represent
        return str(row.get_column(column.name).to_physical()[0])
