"""A condition on rows or on pairs. A row on which it uses a value that does not fit its type raises OutOfRange, and one
on which a Python function fails raises CodeError."""

from __future__ import annotations

import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.expression import Expression
from millstream.runtime.expression.checks import Checks
from millstream.runtime.expression.evaluate import predicate
from millstream.runtime.python.calls import PythonCalls

_HOLDS = "__holds"


class Condition:
    def __init__(self, expression: Expression) -> None:
        self._calls = PythonCalls(expression)
        assert self._calls.condition is not None
        self._predicate, self._checks = predicate(self._calls.condition), Checks(self._calls.condition)

    def filter(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows for which the condition is true."""
        if self._calls:
            return rows.filter(pl.Series(self.holds(rows)))
        self.verify(rows)
        return rows.filter(self._predicate)

    def holds(self, rows: pl.DataFrame) -> Mask:
        """Return the mask of the rows for which the condition is true."""
        rows = self._calls.for_condition(rows)
        self._checks.verify(rows)
        return self._true(rows)

    def judge(self, rows: pl.DataFrame) -> tuple[Mask, Mask | None]:
        """Return the masks of the rows for which the condition is true, and of those on which `verify` would raise
        (None: of none), for an operator that may not use all of them."""
        rows = self._calls.for_condition(rows)
        return self._true(rows), self._checks.failing(rows)

    def verify(self, rows: pl.DataFrame) -> None:
        """Raise OutOfRange if the condition uses a value that does not fit."""
        self._checks.verify(self._calls.for_condition(rows))

    def _true(self, rows: pl.DataFrame) -> Mask:
        marked = rows.with_columns(self._predicate.fill_null(False).alias(_HOLDS))
        return marked.get_column(_HOLDS).to_numpy()
