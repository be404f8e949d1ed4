"""Desired feedback at the top of a query: rows that are wanted first precede the others.

Rows change places only where their order is free. If the output is in the order of time, rows of equal time change
places; otherwise all rows of a page do.

>>> from millstream.algebra.punctuation.restriction import equal
>>> rows = pl.DataFrame({"k": [1, 2, 1, 2], TS: [1, 1, 2, 2]})
>>> [Preference([Pattern.of(k=equal(2))], ordered=flag)(rows).get_column("k").to_list() for flag in (True, False)]
[[2, 1, 2, 1], [2, 2, 1, 1]]
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import TS

_LAST = "__last"


class Preference:
    """The rows of a query that are wanted first, those that match one of the patterns."""

    __slots__ = ("ordered", "patterns")

    def __init__(self, patterns: Sequence[Pattern], *, ordered: bool) -> None:
        self.patterns, self.ordered = patterns, ordered

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the wanted ones first; the order is the same otherwise."""
        wanted = pl.any_horizontal([pattern.expression() for pattern in self.patterns])
        mask = rows.select(wanted.alias(_LAST)).to_series()
        if not mask.any() or mask.all():
            return rows
        if self.ordered:
            return rows.with_columns((~mask).alias(_LAST)).sort(TS, _LAST, maintain_order=True).drop(_LAST)
        return pl.concat([rows.filter(mask), rows.filter(~mask)])
