"""Division by a constant, rounded as the division of two columns is, and its remainder.

Polars multiplies a column by the reciprocal of a constant divisor. That rounds twice (49 / 49 is below 1), and not on a
page of one row, so a result would depend on the cut into batches. Here the divisor is a column of equal values.

>>> rows = pl.DataFrame({"v": [49.0, 49.0, None]})
>>> rows.select(quotient(pl.col("v"), pl.lit(49.0))).to_series().to_list()
[1.0, 1.0, None]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl


def quotient(value: pl.Expr, by: pl.Expr) -> pl.Expr:
    """Return a quotient of floats, exact but for one rounding, if the divisor is a constant too."""
    return _by_column(operator.truediv, value, by)


def modulus(value: pl.Expr, by: pl.Expr) -> pl.Expr:
    """Return the remainder of floats with the sign of the value: C's `fmod`, which is exact."""
    return _by_column(_fmod, value, by)


def _fmod(values: pl.Series, divisors: pl.Series) -> pl.Series:
    with np.errstate(invalid="ignore"):
        found = pl.Series(values.name, np.fmod(values.to_numpy(), divisors.to_numpy()))
    unknown = values.is_null() | divisors.is_null()
    return found.set(unknown, None) if unknown.any() else found


def _by_column(operation: Callable[[pl.Series, pl.Series], pl.Series], value: pl.Expr, by: pl.Expr) -> pl.Expr:
    def computed(operands: Sequence[pl.Series]) -> pl.Series:
        values, divisors = operands
        if len(divisors) == 1 < len(values):
            divisors = divisors.new_from_index(0, len(values))
        return operation(values, divisors)

    both = [value.cast(pl.Float64), by.cast(pl.Float64)]
    return pl.map_batches(both, computed, return_dtype=pl.Float64, is_elementwise=True)
