"""The history of early answers: pairs of an early value and its final one, by group and by the share of a window seen.

An answer is predicted from the last `PAIRS` pairs of its group at the same share, to `BINS` of a window. If the last
`HOURLY` pairs of the same hour of the day are of two days or more, these are taken instead. Pairs are forgotten when
time has passed them by `AGE` slides, and by eight days at least where the hour is known.

The pairs that count are chosen when they are read, so that it does not matter when the others are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from millstream.algebra.qualities import PAIR
from millstream.algebra.types import MICROS
from millstream.runtime.operator.keys import joined
from millstream.runtime.state.table import StateTable

BINS = 20
PAIRS, HOURLY, LEAST = 60, 24, 5
"""`LEAST`: fewer pairs predict nothing."""
AGE = 2000
END, BIN, SHARE = "__end", "__bin", "__share"
COUNT = "__count"
"""The number of values that an early answer was made of; NULL if its kind of aggregate does not need it."""
EARLY, FINAL, GAP = PAIR
HOUR = 3600 * MICROS
_ROW, _HOUR = "__row", "__hour"


def bin_of(share: pl.Expr) -> pl.Expr:
    """The number of the bin of a share."""
    return (share * BINS + 1e-9).floor().cast(pl.Int32)


def hour_of(end: pl.Expr) -> pl.Expr:
    """The hour of the day in which a window ends, its last instant included; `end` in microseconds."""
    return ((end - 1) // HOUR % 24).cast(pl.Int32)


class History:
    """`groups`: the columns of a group, with their types. `hourly`: ends of windows are moments of a day."""

    def __init__(self, groups: Mapping[str, pl.DataType], slide: int, *, hourly: bool) -> None:
        self._groups, self._hourly = list(groups), hourly
        self._age = max(AGE * slide, 8 * 24 * HOUR) if hourly else AGE * slide
        numbers = dict.fromkeys((SHARE, COUNT, EARLY, FINAL), pl.Float64())
        self.table = StateTable({**groups, END: pl.Int64(), BIN: pl.Int32(), **numbers})
        self._limit = 1024

    def add(self, pairs: pl.DataFrame, now: int) -> None:
        """Add pairs, in order; `now`: the time of the last prod."""
        self.table.append(pairs.select(list(self.table.schema)))
        if len(self.table) > self._limit:
            self._trim(now)
            self._limit = 2 * len(self.table) + 1024

    def _trim(self, now: int) -> None:
        """Drop pairs that no reader will choose."""
        ranks = [_rank([*self._groups, BIN]) < PAIRS]
        if self._hourly:
            ranks.append(_rank([*self._groups, BIN, _HOUR]) < HOURLY)
        frame = self.table.frame().with_columns(hour_of(pl.col(END)).alias(_HOUR))
        kept = pl.any_horizontal(ranks) & (pl.col(END) >= now - self._age)
        self.table.keep(frame.select(kept).to_series())

    def for_rows(self, rows: pl.DataFrame, now: int) -> pl.DataFrame:
        """Return the pairs that count for each of some answers (group, END, BIN), with the number of the answer in
        the column `__row`, in order. `now`: the time of the prod."""
        asked = rows.select(*self._groups, BIN, hour_of(pl.col(END)).alias("__asked")).with_row_index(_ROW)
        held = self.table.frame().filter(pl.col(END) >= now - self._age)
        found = joined(asked, held, [*self._groups, BIN], "inner")
        found = found.with_columns(hour_of(pl.col(END)).alias(_HOUR))
        newest = found.filter(_rank([_ROW]) < PAIRS)
        if not self._hourly:
            return newest
        same = found.filter(pl.col(_HOUR) == pl.col("__asked")).filter(_rank([_ROW]) < HOURLY)
        days = (pl.col(END) - 1) // (24 * HOUR)
        same = same.filter((days.n_unique().over(_ROW) >= 2) & (pl.len().over(_ROW) >= LEAST))
        return pl.concat([newest.join(same, on=_ROW, how="anti", maintain_order="left"), same])


def _rank(keys: list[str]) -> pl.Expr:
    """The number of later rows with the same keys."""
    return pl.int_range(pl.len()).reverse().over(keys)
