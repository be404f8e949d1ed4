"""The columns that the passing of time closes, as punctuation that an operator applies to its own state only.

A bound on time is a number for a whole step, so that nothing is computed per tuple. The punctuations are never emitted:
operators further down learn the time itself.

>>> closing = TimeClosing([Limit("t", "<", Column(Type.BIGINT, TS))])
>>> closing.advance(7), closing.advance(7)
(Punctuations([t < 7]), Punctuations())
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import polars as pl

from millstream.algebra.expression import Binary, Column, Expression, Literal
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS
from millstream.algebra.time_limits import Limit
from millstream.algebra.types import Type, micros
from millstream.errors import MillstreamError
from millstream.runtime.expression.evaluate import to_polars

FAR = 1 << 61
"""Times further from zero close nothing before the end of the stream: arithmetic on them could overflow."""
_NONE = Punctuations.of(())


class TimeClosing:
    """`limits`: what a bound closes. Each bound is reported once, and only if it is higher than those before."""

    __slots__ = ("_limits", "_reached")

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._limits = [(limit.column, limit.op, limit.value) for limit in limits]
        self._reached = NEVER

    def __bool__(self) -> bool:
        return bool(self._limits)

    def advance(self, bound: int) -> Punctuations:
        """Return the punctuations that a bound on time amounts to, if it is new."""
        if bound <= self._reached or not self._limits or not -FAR < bound < FAR:
            return _NONE
        self._reached = bound
        closed: list[Punctuations] = []
        for column, op, value in self._limits:
            limit = limit_at(value, bound)
            if limit is not None:
                closed.append(Punctuations.from_column(column, op, limit.cast(pl.Int64) if column == TS else limit))
        return closed[0] if len(closed) == 1 else Punctuations.concat(closed)


def limit_at(value: Expression, bound: int) -> pl.Series | None:
    """Return the value for a bound. A bound plus a constant, by far the most common, needs no query planner."""
    match value:
        case Column(type=type_, name="__ts"):
            stamp = pl.Series([bound], dtype=pl.Int64)
            return stamp.cast(type_.polars) if type_ is Type.TIMESTAMP else stamp
        case Binary(type=Type.BIGINT, op=op, left=Column(name="__ts"), right=Literal(value=int() as step)):
            if op in ("+", "-") and abs(step) < FAR:
                return pl.Series([bound + step if op == "+" else bound - step], dtype=pl.Int64)
        case Binary(type=Type.TIMESTAMP, op=op, left=Column(name="__ts"), right=Literal(value=timedelta() as step)):
            if op in ("+", "-"):
                moved = bound + micros(step) if op == "+" else bound - micros(step)
                return pl.Series([moved], dtype=pl.Int64).cast(pl.Datetime("us"))
    return values_of(value, pl.DataFrame({TS: [bound]}))


def values_of(expression: Expression, columns: pl.DataFrame) -> pl.Series | None:
    """Return the values of an expression; None if it has none, as where a number is too large."""
    try:
        return columns.select(to_polars(expression)).to_series()
    except (MillstreamError, pl.exceptions.PolarsError):
        return None
