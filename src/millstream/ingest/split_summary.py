"""Word of a whole split of a stream, for shards that get only their part of its rows.

There is word of a split in which no row breaks what the rows and punctuations before it in the split promise. Whether
one of its rows is late then depends on earlier splits alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.values import value
from millstream.ingest.ascending import Span, physical
from millstream.ingest.placed_punctuations import PlacedPunctuations, integers
from millstream.ingest.promises import Promises


@value("whole")
@dataclass(frozen=True, slots=True)
class SplitSummary:
    """The number of rows, and the lowest and highest value of the time column and of each ascending column."""

    rows: int
    spans: Mapping[str, Span] = field(default_factory=dict)


def slack_of(schema: Schema, watermark: int | None) -> int | None:
    """By how much a tuple may be older than one before it; None: order makes no tuple late."""
    if schema.kind is not TimeKind.EXTERNAL or schema.time is None:
        return None
    return watermark if watermark is not None or not schema.ordered else 0


def summary_of(
    rows: pl.DataFrame,
    placed: PlacedPunctuations | None,
    schema: Schema,
    watermark: int | None = None,
    ascending: Sequence[str] = (),
) -> SplitSummary | None:
    """Word of these rows; None if one of them breaks a promise made among them."""
    columns: dict[str, tuple[Integers, int | None]] = {column: (physical(rows, column), 0) for column in ascending}
    time = schema.time if schema.kind is TimeKind.EXTERNAL else None
    if time is not None:
        columns[time] = integers(rows.get_column(time)), slack_of(schema, watermark)
    if placed is not None:
        promises = Promises(time, None if time is None else schema.type_of(time).polars)
        stamps = columns[time][0] if time is not None else np.zeros(rows.height, dtype=np.int64)
        if promises.broken(rows, stamps, placed, promises.keys(placed)).any():
            return None
    spans = {column: _span(*run) for column, run in columns.items() if rows.height}
    known = {column: span for column, span in spans.items() if span is not None}
    return SplitSummary(rows.height, known) if len(known) == len(spans) else None


def _span(values: Integers, slack: int | None) -> Span | None:
    """The lowest and the highest value; None if one falls by more than the slack."""
    if bool((values[1:] >= values[:-1]).all()):
        return Span(int(values[0]), int(values[-1]))
    if slack is not None and int((np.maximum.accumulate(values) - values).max()) > slack:
        return None
    return Span(int(values.min()), int(values.max()))
