"""Columns declared ASCENDING: the tuples that violate the order, and the punctuations that the others imply.

Each column is judged by itself. A tuple with a value below one accepted before it is late; a tuple that raises the
highest value is followed by `[column < value]`.

>>> numbered = Ascending(("seq",))
>>> rows = pl.DataFrame({"seq": [4, 4, 3, 7]})
>>> accepted = numbered.judge(rows, np.ones(4, dtype=np.bool_))
>>> accepted.tolist(), numbered.placed(rows, accepted)[0].punctuations
([True, True, False, True], Punctuations([seq < 4] [seq < 7]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.schema import NEVER
from millstream.algebra.values import value
from millstream.ingest.placed_punctuations import PlacedPunctuations


@value("span")
class Span(NamedTuple):
    """The lowest and the highest value of a column."""

    lowest: int
    highest: int


class Ascending:
    def __init__(self, columns: Sequence[str]) -> None:
        self._highest = dict.fromkeys(columns, NEVER)

    def __bool__(self) -> bool:
        return bool(self._highest)

    def fits(self, spans: Mapping[str, Span]) -> bool:
        """Return whether no tuple of a split is below one before the split."""
        return all(spans[column].lowest >= highest for column, highest in self._highest.items())

    def judge(self, rows: pl.DataFrame, accepted: Mask) -> Mask:
        """Return a mask of the tuples that are in no column below one accepted before them."""
        kept = np.ones(rows.height, dtype=np.bool_)
        for column, highest in self._highest.items():
            values = physical(rows, column)
            kept &= values >= highest_before(highest, values, accepted)
        return kept

    def placed(self, rows: pl.DataFrame, accepted: Mask) -> list[PlacedPunctuations]:
        """Return the punctuations that the accepted tuples imply, column by column."""
        derived: list[PlacedPunctuations] = []
        for column, highest in self._highest.items():
            values = physical(rows, column)
            places = np.flatnonzero(accepted & (values > highest_before(highest, values, accepted)))
            derived.append(PlacedPunctuations.below(column, rows.get_column(column).gather(places), places + 1))
        return derived

    def count(self, rows: pl.DataFrame, accepted: Mask, spans: Mapping[str, Span]) -> None:
        """Record the accepted tuples, and the spans of the whole split where they are known."""
        for column, highest in self._highest.items():
            if column in spans:
                self._highest[column] = max(highest, spans[column].highest)
            elif accepted.any():
                self._highest[column] = max(highest, int(physical(rows, column)[accepted].max()))

    def to_value(self) -> dict[str, int]:
        return dict(self._highest)

    def restore(self, value: Mapping[str, int]) -> None:
        self._highest |= value


def highest_before(highest: int, values: Integers, accepted: Mask) -> Integers:
    """Return for each tuple the highest value accepted before it; `highest` is that of earlier batches."""
    known = np.concatenate(([highest], np.where(accepted, values, NEVER)))
    before: Integers = np.maximum.accumulate(known)[:-1]
    return before


def physical(rows: pl.DataFrame, column: str) -> Integers:
    """Return the values of a column without NULL as integers."""
    return rows.get_column(column).cast(pl.Int64).to_numpy()
