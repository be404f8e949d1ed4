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
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.schema import NEVER
from millstream.algebra.values import value
from millstream.ingest.marks import Integers, Marks

Mask = npt.NDArray[np.bool_]


@value("climb")
@dataclass(frozen=True, slots=True)
class Climb:
    """How a column runs through some rows: its first value, its highest, and whether it falls anywhere."""

    first: int
    highest: int
    falls: bool


def climbs(rows: pl.DataFrame, columns: Sequence[str]) -> tuple[Climb, ...]:
    """How each of these columns runs; nothing if there are no rows."""
    made: list[Climb] = []
    for column in columns if rows.height else ():
        values = _integers(rows, column)
        made.append(Climb(int(values[0]), int(values.max()), bool((values[1:] < values[:-1]).any())))
    return tuple(made)


class Ascending:
    def __init__(self, columns: Sequence[str]) -> None:
        self._highest = dict.fromkeys(columns, NEVER)

    def __bool__(self) -> bool:
        return bool(self._highest)

    def fits(self, whole: Sequence[Climb]) -> bool:
        """Whether no tuple of a whole is below one before it."""
        known = zip(whole, self._highest.values(), strict=False)
        return all(not climb.falls and climb.first >= highest for climb, highest in known)

    def kept(self, rows: pl.DataFrame, accepted: Mask) -> Mask:
        """Which tuples are nowhere below one accepted before them."""
        kept = np.ones(rows.height, dtype=np.bool_)
        for column, highest in self._highest.items():
            values = _integers(rows, column)
            kept &= values >= highest_before(highest, values, accepted)
        return kept

    def marks(self, rows: pl.DataFrame, accepted: Mask, whole: Sequence[Climb] = ()) -> list[Marks]:
        """The punctuations that follow the accepted tuples, column by column, and those of a whole at its end."""
        made: list[Marks] = []
        for number, (column, highest) in enumerate(self._highest.items()):
            values = _integers(rows, column)
            places = np.flatnonzero(accepted & (values > highest_before(highest, values, accepted)))
            bounds, after = rows.get_column(column).gather(places), places + 1
            if whole and whole[number].highest > max(highest, int(values[places[-1]]) if len(places) else NEVER):
                end = pl.Series(column, [whole[number].highest], dtype=pl.Int64).cast(bounds.dtype)
                bounds, after = bounds.append(end), np.append(after, rows.height)
            made.append(Marks.below(column, bounds, after))
        return made

    def count(self, rows: pl.DataFrame, accepted: Mask, whole: Sequence[Climb] = ()) -> None:
        """Take note of the accepted tuples, and of those of a whole."""
        for column, climb in zip(self._highest, whole, strict=False):
            self._highest[column] = max(self._highest[column], climb.highest)
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
