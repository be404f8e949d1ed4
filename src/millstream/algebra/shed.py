"""Shed tuples: what is missing of a stream because an operator has dropped it to keep up.

An operator that sheds tuples says so in the stream, before any punctuation or time that they held back. The notice has
their timestamps and the values of the columns that are known. Behind other operators it says what may be missing, or
wrong, of their output: a row per set of results that lie between two timestamps and have these values. A column that
it lacks may have any value. Aggregates mark the results that may lack tuples: `final-shed`.

| operator | results concerned |
|---|---|
| row by row: selection, projection, union | the same timestamps, columns by their new names |
| join within windows | up to a window later |
| aggregate | the windows, and groups, that the tuples belong to |
| any other | all from now on |

>>> tuples = pl.DataFrame({"k": [7, 7, 8], TS: [3, 3, 5]})
>>> shed = Shed.of(tuples, ["k"])
>>> shed
Shed([(3, 3, 7), (5, 5, 8)])
>>> shed.renamed({"k": ("key",)}).later(10).names, shed.renamed({}).later(10)
(['key'], Shed([(3, 13), (5, 15)]))
>>> both = Shed.of(tuples.with_columns(j=pl.col("k")), ["k", "j"])
>>> both.select({"k": "k", "j": "k"})
Shed([(3, 3, 7), (5, 5, 8)])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.algebra.values import value

FIRST, LAST = BETWEEN = ("__first", "__last")
"""Columns of a notice: the lowest and the highest timestamp of the results concerned."""


@value("shed", fields=("rows",))
class Shed(Element):
    """A notice of shed tuples: `rows` has two timestamps, and the columns whose values are known."""

    __slots__ = ("rows",)
    overtakes = True
    punctuation_count = 0

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows

    @classmethod
    def of(cls, tuples: pl.DataFrame, names: Iterable[str]) -> Shed:
        """The notice of these tuples."""
        times = (pl.col(TS).alias(FIRST), pl.col(TS).alias(LAST))
        return cls(tuples.select(*times, *names).unique(maintain_order=True))

    @property
    def names(self) -> list[str]:
        """The columns whose values are known."""
        return self.rows.columns[len(BETWEEN) :]

    def __bool__(self) -> bool:
        return self.rows.height > 0

    def select(self, names: Mapping[str, str]) -> Shed:
        return self.renamed({old: (new,) for old, new in names.items()})

    def renamed(self, names: Mapping[str, tuple[str, ...]]) -> Shed:
        """The notice with the columns in `names`, under new ones. Of columns that get the same name one is enough."""
        columns = {new: pl.col(old).alias(new) for old in reversed(self.names) for new in names.get(old, ())}
        return Shed(self.rows.select(*BETWEEN, *columns.values()).unique(maintain_order=True))

    def later(self, length: int | None) -> Shed:
        """The notice of results that are up to a length of time later; None: at any later time."""
        if length is None:
            return Shed(self.rows.with_columns(pl.lit(FOREVER).alias(LAST)))
        last = pl.when(pl.col(LAST) > FOREVER - length).then(FOREVER).otherwise(pl.col(LAST) + length)
        return Shed(self.rows.with_columns(last.alias(LAST)))

    def moved(self, distance: int) -> Shed:
        """The notice of results at a distance from these."""
        ends = pl.col(*BETWEEN)
        return Shed(self.rows.with_columns(ends + pl.when(ends.is_in([NEVER, FOREVER])).then(0).otherwise(distance)))

    def anytime(self) -> Shed:
        """The notice of results at any time."""
        rows = self.rows.with_columns(pl.lit(NEVER).alias(FIRST), pl.lit(FOREVER).alias(LAST))
        return Shed(rows.unique(maintain_order=True))

    def __repr__(self) -> str:
        return f"Shed({self.rows.rows()})"


ANYTHING = Shed(pl.DataFrame({FIRST: [NEVER], LAST: [FOREVER]}))
"""Any result may be concerned from now on."""
