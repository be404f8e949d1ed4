"""Measures of early answers: accuracy and latency, by pairs of an early row and its final row."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def accuracy(early: str, final: str) -> pl.Expr:
    """Accuracy in percent: 100 (|F| - |F - E|) / |F|; if F is 0, 100 if E is 0 too, otherwise 0."""
    e, f = pl.col(early).cast(pl.Float64), pl.col(final).cast(pl.Float64)
    exact = pl.when(e == 0).then(100.0).otherwise(0.0)
    return pl.when(f == 0).then(exact).otherwise(100 * (f.abs() - (f - e).abs()) / f.abs())


def pairs(rows: pl.DataFrame, values: Sequence[str], keys: Sequence[str] = ("window_end",)) -> pl.DataFrame:
    """Early rows, each with the final row of its window and group (`name_final`), and the accuracy of each value
    (`name_accuracy`)."""
    early = rows.filter(pl.col("finality") == "early")
    final = rows.filter(pl.col("finality") == "final").drop("finality", "revision", strict=False)
    joined = early.join(final, on=list(keys), suffix="_final")
    return joined.with_columns(accuracy(name, f"{name}_final").alias(f"{name}_accuracy") for name in values)


def inner(rows: pl.DataFrame, range_: int, length: int) -> pl.DataFrame:
    """Without windows that begin before the stream or end after it."""
    return rows.filter(pl.col("window_end").is_between(range_, length))


def gain_percent(early: float, final: float) -> float:
    """The share of the final latency that early answers save, in percent.

    >>> gain_percent(15.0, 20.0)
    25.0
    """
    return 100 * (final - early) / final
