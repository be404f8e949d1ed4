"""How good the early answers of a query were: running numbers of their accuracy, once final ones are known.

>>> early, final = [80.0, -8.0, 30.0, 0.0, 1.0], [100.0, -10.0, 10.0, 0.0, 0.0]
>>> pl.DataFrame({"e": early, "f": final}).select(accuracies(pl.col("e"), pl.col("f"))).to_series().to_list()
[80.0, 80.0, -100.0, 100.0, 0.0]
"""

from __future__ import annotations

from dataclasses import field

import polars as pl

from millstream.algebra.values import record

PAIR = ("__early", "__final", "__gap")
"""The columns of a pair: the early value, the final one, and the time from the one to the end of the window."""


def accuracies(early: pl.Expr, final: pl.Expr) -> pl.Expr:
    """The accuracy of pairs (`accuracy`), in percent. NULL makes no pair."""
    size = final.abs()
    exact = pl.when(early == 0).then(100.0).otherwise(0.0)
    return pl.when(size == 0).then(exact).otherwise(100 * (size - (final - early).abs()) / size)


@record("qualities")
class Qualities:
    """Running numbers of a quality: of how many pairs, their sum, the worst, and how many had the final value 0."""

    count: int = 0
    total: float = 0.0
    worst: float | None = None
    zero: int = 0

    @classmethod
    def of(cls, values: pl.Series, final: pl.Series) -> Qualities:
        """The numbers of some pairs.

        >>> Qualities.of(pl.Series([80.0, None, 100.0]), pl.Series([10.0, None, 0.0]))
        Qualities(count=2, total=180.0, worst=80.0, zero=1)
        """
        known = values.drop_nulls()
        if not len(known):
            return cls()
        zero = int((final.filter(values.is_not_null()) == 0).sum()) if final.dtype.is_numeric() else 0
        worst = known.min()
        assert isinstance(worst, int | float)
        return cls(len(known), float(known.sum()), float(worst), zero)

    def __add__(self, other: Qualities) -> Qualities:
        worst = [each.worst for each in (self, other) if each.worst is not None]
        total = self.total + other.total
        return Qualities(self.count + other.count, total, min(worst, default=None), self.zero + other.zero)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def __str__(self) -> str:
        if self.mean is None:
            return "no pair yet"
        return f"{self.mean:.2f} on average, {self.worst:.2f} at worst, {self.count:,} pairs"


@record("accuracy")
class Accuracy:
    """Of all early answers, and of the last one for each window and group before its final one."""

    all: Qualities = field(default_factory=Qualities)
    last: Qualities = field(default_factory=Qualities)

    def __add__(self, other: Accuracy) -> Accuracy:
        return Accuracy(self.all + other.all, self.last + other.last)
