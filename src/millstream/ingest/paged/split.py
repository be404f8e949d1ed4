"""The protocol of page sources: they cut a stream into batches, and a batch into splits that any worker can read again.

| | |
|---|---|
| an offset | a position in the stream, as plain JSON; it determines the next batch together with `latest` |
| a batch | the rows between an offset and the next one, which `latest` returns |
| a split | a part of a batch: a small value that yields the same rows at any time and on any worker |
| the stream | the rows of the splits, in order, batch after batch |

Only `latest` looks at the clock and at new data. So a batch with two known offsets can be cut into splits again after a
crash, and the splits have the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np
import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import Schema
from millstream.algebra.values import record
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.rows import NO_BAD

Offset = dict[str, Any]


@record("piece_rows")
class SplitRows:
    """The rows that fit, with the schema's types, and the bad rows with their text and the reason."""

    rows: pl.DataFrame | PunctuatedRows
    bad: pl.DataFrame = field(default_factory=lambda: NO_BAD)


class Split(Protocol):
    @property
    def rows(self) -> int | None:
        """Number of rows, including bad ones; None if it is unknown before reading."""

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        """Read the rows, with these columns of the stream in the order of its schema; None: all columns."""


@record("end_piece")
class EndSplit:
    """The end of a stream: a punctuation that excludes all later tuples."""

    schema: Schema
    names: tuple[str, ...]
    rows: int | None = 0

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        empty = self.schema.empty().select(columns or self.names)
        return SplitRows(PunctuatedRows(empty, Punctuations.of([Pattern()]), np.zeros(1, dtype=np.int64)))


@record("given_piece")
class GivenSplit:
    """Rows in memory. They cannot be read again elsewhere, so the split contains them."""

    given: SplitRows
    rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:  # noqa: ARG002
        return self.given


class PagedSource(Protocol):
    """A source may also have an attribute `ends`: true if the stream is known to end."""

    def start(self) -> Offset:
        """Return the offset at the start of the stream."""

    def latest(self, offset: Offset, now: int) -> Offset:
        """Return the end of the batch that starts at the offset; the same offset if there is nothing to read.

        `now` is the system time in microseconds since the epoch.
        """

    def splits(self, start: Offset, end: Offset, parallelism: int) -> list[Split]:
        """Return the batch between an offset and its `latest`, in at most `parallelism` splits."""

    def ended(self, offset: Offset) -> bool:
        """Return whether the stream ends at the offset."""

    def behind(self, offset: Offset) -> int | None:
        """Return the approximate number of rows waiting to be read; None if it is unknown."""


def selected(schema: Schema, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return these columns in the order of the schema (None: all); raise BindError if one is unknown."""
    for name in columns or ():
        schema.index(name)
    return tuple(name for name in schema.names if columns is None or name in columns)


def narrowed(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the frame with these columns only; without any it keeps its height."""
    return frame.select(names) if names else pl.DataFrame(height=frame.height)


def how_many(total: int, worth: int, parallelism: int) -> int:
    """Number of splits: at least `worth` of the total in each, at most `parallelism`."""
    return max(1, min(parallelism, total // worth))
