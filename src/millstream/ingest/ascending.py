"""Columns that never fall, as a stream declares them: which tuples break that, and what follows from the others.

Each column stands for itself. A tuple with a value below one accepted before it is late; one that raises the highest
value is followed by `[column < value]`.

>>> numbered = Ascending(("seq",))
>>> rows = pl.DataFrame({"seq": [4, 4, 3, 7]})
>>> accepted = numbered.kept(rows, np.ones(4, dtype=np.bool_))
>>> accepted.tolist(), numbered.marks(rows, accepted)[0].punctuations
([True, True, False, True], Punctuations([seq < 4] [seq < 7]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.schema import NEVER
from millstream.ingest.marks import Integers, Marks

Mask = npt.NDArray[np.bool_]


class Ascending:
    def __init__(self, columns: Sequence[str]) -> None:
        self._highest = dict.fromkeys(columns, NEVER)

    def __bool__(self) -> bool:
        return bool(self._highest)

    def kept(self, rows: pl.DataFrame, accepted: Mask) -> Mask:
        """Which tuples are nowhere below one accepted before them."""
        kept = np.ones(rows.height, dtype=np.bool_)
        for column, highest in self._highest.items():
            values = _integers(rows, column)
            kept &= values >= highest_before(highest, values, accepted)
        return kept

    def marks(self, rows: pl.DataFrame, accepted: Mask) -> list[Marks]:
        """The punctuations that follow the accepted tuples, column by column."""
        made: list[Marks] = []
        for column, highest in self._highest.items():
            values = _integers(rows, column)
            places = np.flatnonzero(accepted & (values > highest_before(highest, values, accepted)))
            made.append(Marks.below(column, rows.get_column(column).gather(places), places + 1))
        return made

    def count(self, rows: pl.DataFrame, accepted: Mask) -> None:
        """Take note of the accepted tuples."""
        if accepted.any():
            for column, highest in self._highest.items():
                self._highest[column] = max(highest, int(_integers(rows, column)[accepted].max()))

    def to_value(self) -> dict[str, int]:
        return dict(self._highest)

    def restore(self, value: Mapping[str, int]) -> None:
        self._highest |= value


def highest_before(highest: int, values: Integers, accepted: Mask) -> Integers:
    """For each tuple the highest value accepted before it, given the highest of all earlier ones."""
    known = np.concatenate(([highest], np.where(accepted, values, NEVER)))
    before: Integers = np.maximum.accumulate(known)[:-1]
    return before


def _integers(rows: pl.DataFrame, column: str) -> Integers:
    return rows.get_column(column).to_physical().cast(pl.Int64).to_numpy()
