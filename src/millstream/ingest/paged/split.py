"""What a page source is: a place that tuples come from, cut into splits that any worker can read again.

| | |
|---|---|
| an offset | how far the stream has been read; plain JSON; all that steers a batch is in it |
| a batch | goes from one offset to the next one, which `latest` made of it |
| a split | a part of a batch; it is a value, small, and gives the same rows whenever and wherever it is read |
| the stream | the rows of the splits, in order, batch after batch |

Nothing but `latest` looks at the clock or at what has arrived. So a batch whose two offsets are known can be cut into
splits again after a crash, and they have the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import Schema
from millstream.algebra.values import value
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.rows import NO_BAD

Offset = dict[str, Any]


@value("piece_rows")
@dataclass(frozen=True, slots=True)
class SplitRows:
    """The rows that fit, of the schema's types, and the bad ones with their text and the reason."""

    rows: pl.DataFrame | PunctuatedRows
    bad: pl.DataFrame = field(default_factory=lambda: NO_BAD)


class Split(Protocol):
    @property
    def rows(self) -> int | None:
        """How many rows it has, bad ones included, if that is known without reading it."""

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        """The rows, with these columns of the stream in the order of its schema; with all of them, if None."""


@value("end_piece")
@dataclass(frozen=True, slots=True)
class EndSplit:
    """The end of a stream: nothing more will come."""

    schema: Schema
    names: tuple[str, ...]
    rows: int | None = 0

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        empty = self.schema.empty().select(columns or self.names)
        return SplitRows(PunctuatedRows(empty, Punctuations.of([Pattern()]), np.zeros(1, dtype=np.int64)), NO_BAD)


@value("given_piece")
@dataclass(frozen=True, slots=True)
class GivenSplit:
    """Rows that are at hand; they cannot be read again elsewhere, so they travel as they are."""

    given: SplitRows
    rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:  # noqa: ARG002
        return self.given


class PagedSource(Protocol):
    def start(self) -> Offset:
        """Where the stream begins."""

    def latest(self, offset: Offset, now: int) -> Offset:
        """Where a batch that begins at the offset ends: the same offset if there is nothing to read.

        `now` is the system time in microseconds since the epoch.
        """

    def splits(self, start: Offset, end: Offset, parallelism: int) -> list[Split]:
        """The batch between an offset and what `latest` made of it, in so many splits where that is worth it."""

    def ended(self, offset: Offset) -> bool:
        """Whether nothing will ever come after the offset."""

    def behind(self, offset: Offset) -> int | None:
        """About how many rows wait to be read; None if that cannot be said."""


def how_many(total: int, worth: int, parallelism: int) -> int:
    """Into how many splits to cut so much, if a split should have at least so much to be worth its task."""
    return max(1, min(parallelism, total // worth))
