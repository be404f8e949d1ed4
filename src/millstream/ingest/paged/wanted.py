"""Splits without the rows that no reader of the stream wants.

An unwanted row is not packed, and as little of it is read as the source can do with. What it says of time and keys is
still known: `known` has the columns that decide which rows are late, for all rows of the split. A split whose values
can be read by column has a method `read_wanted`; any other split is read whole.

>>> from millstream.algebra.punctuation.restriction import equal
>>> split = GivenSplit(SplitRows(pl.DataFrame({"k": [1, 2, 1], "ts": [4, 5, 6]})))
>>> found = read_wanted(split, ("k", "ts"), (Pattern.of(k=equal(1)),), {"ts"})
>>> found.rows.rows(), found.known.height
([(2, 5)], 3)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.punctuation.index import Index
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.values import value
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.paged.split import GivenSplit, Split, SplitRows
from millstream.ingest.placed_punctuations import PlacedPunctuations
from millstream.ingest.rows import NO_BAD

__all__ = [
    "NONE_SKIPPED",
    "GivenSplit",
    "Skipped",
    "SplitRows",
    "Wanted",
    "read_wanted",
    "rows_and_punctuations",
    "unwanted_rows",
]

Patterns = tuple[Pattern, ...]
FEW = 8
"""Up to this many patterns are tested one by one, which is faster than a set of them."""


@value("skipped")
@dataclass(frozen=True, slots=True)
class Skipped:
    """What a source has read and left out because no reader wants it. A chunk is a column of a row group."""

    tested: int = 0
    """Rows that were compared with the patterns, one by one or by the statistics of their row group."""
    rows: int = 0
    groups_read: int = 0
    groups: int = 0
    """Row groups that the statistics have shown to be unwanted as a whole."""
    chunks_read: int = 0
    chunks: int = 0

    def __add__(self, other: Skipped) -> Skipped:
        return Skipped(
            self.tested + other.tested,
            self.rows + other.rows,
            self.groups_read + other.groups_read,
            self.groups + other.groups,
            self.chunks_read + other.chunks_read,
            self.chunks + other.chunks,
        )


NONE_SKIPPED = Skipped()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted `rows` of a split. `known`: columns of all rows; `kept`: the mask of the wanted ones among them, None
    if all are; `placed`: the punctuations, by their positions among all rows."""

    rows: pl.DataFrame
    known: pl.DataFrame
    kept: Mask | None = None
    placed: PlacedPunctuations | None = None
    bad: pl.DataFrame = field(default_factory=lambda: NO_BAD)
    skipped: Skipped = field(default_factory=Skipped)


def read_wanted(split: Split, columns: Sequence[str], unwanted: Patterns, deciding: Collection[str]) -> Wanted:
    """Read the rows of a split that match none of the patterns; of all rows at least the `deciding` columns."""
    own = getattr(split, "read_wanted", None) if unwanted else None
    made: Wanted | None = None if own is None else own(columns, unwanted, deciding)
    if made is not None:
        return made
    taken = split.read(columns)
    rows, placed = rows_and_punctuations(taken.rows)
    if not unwanted or not rows.height:
        return Wanted(rows, rows, None, placed, taken.bad)
    match = unwanted_rows(rows, unwanted)
    count = int(match.sum())
    if not count:
        return Wanted(rows, rows, None, placed, taken.bad, Skipped(rows.height))
    kept = ~match
    return Wanted(rows.filter(pl.Series(kept)), rows, kept, placed, taken.bad, Skipped(rows.height, count))


def unwanted_rows(rows: pl.DataFrame, unwanted: Patterns) -> Mask:
    """Return the mask of the rows that match a pattern. A NULL matches only `*`."""
    if any(not pattern.items for pattern in unwanted):
        return np.ones(rows.height, dtype=np.bool_)
    if len(unwanted) <= FEW:
        match = rows.select(pl.any_horizontal([pattern.expression() for pattern in unwanted])).to_series()
    else:
        match = _compiled(unwanted).match(rows)
    found: Mask = match.to_numpy()
    return found


@lru_cache(maxsize=64)
def _compiled(unwanted: Patterns) -> Index:
    return Index(unwanted)


def rows_and_punctuations(given: pl.DataFrame | PunctuatedRows) -> tuple[pl.DataFrame, PlacedPunctuations | None]:
    """Separate rows from the punctuations among them; None: there are none."""
    if not isinstance(given, PunctuatedRows):
        return given, None
    assert isinstance(given.rows, pl.DataFrame)
    return given.rows, PlacedPunctuations(given.punctuations, given.positions) if len(given.punctuations) else None
