"""Quantiles of Student's t: how far a prediction interval that holds with 90 % reaches, in standard errors.

By the expansion of Cornish and Fisher. From two degrees of freedom on it errs by less than 0.3 %.

>>> frame = pl.DataFrame({"df": [1, 2, 4, 10, 59, 1_000_000]})
>>> [round(t, 2) for t in frame.select(t=reach(pl.col("df")))["t"]]
[6.31, 2.91, 2.13, 1.81, 1.67, 1.64]
"""

from __future__ import annotations

import polars as pl

LEVEL = 0.9
"""The share of final values that an interval claims to hold."""
NORMAL = 1.6448536269514722
"""The quantile of the normal distribution at `(1 + LEVEL) / 2`."""
ONE = 6.313751514675043
"""That of Student's t with one degree of freedom."""
TERMS = (
    (NORMAL**3 + NORMAL) / 4,
    (5 * NORMAL**5 + 16 * NORMAL**3 + 3 * NORMAL) / 96,
    (3 * NORMAL**7 + 19 * NORMAL**5 + 17 * NORMAL**3 - 15 * NORMAL) / 384,
    (79 * NORMAL**9 + 776 * NORMAL**7 + 1482 * NORMAL**5 - 1920 * NORMAL**3 - 945 * NORMAL) / 92160,
)


def reach(freedom: pl.Expr) -> pl.Expr:
    """The quantile for some degrees of freedom; NULL below one."""
    inverse = 1 / freedom.cast(pl.Float64)
    expanded = sum((term * inverse.pow(power) for power, term in enumerate(TERMS, 1)), pl.lit(NORMAL))
    return pl.when(freedom >= 2).then(expanded).when(freedom >= 1).then(pl.lit(ONE))
