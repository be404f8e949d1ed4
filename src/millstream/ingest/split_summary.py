"""Summary of a whole split of a stream, for shards that receive only their part of its rows.

A split has a summary if none of its rows violates what the rows and punctuations before it in the split promise.
Whether one of its rows is late then depends on earlier splits alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.schema import Schema
from millstream.algebra.values import record
from millstream.ingest.ascending import Span, physical
from millstream.ingest.placed_punctuations import PlacedPunctuations, integers
from millstream.ingest.promises import Promises, time_column


@record("whole")
class SplitSummary:
    """The number of rows, and the spans of the time column and of each ascending column."""

    rows: int
    spans: Mapping[str, Span] = field(default_factory=dict)


def slack_of(schema: Schema, watermark: int | None) -> int | None:
    """Return by how much a tuple may be older than one before it; None if the order makes no tuple late."""
    if time_column(schema) is None:
        return None
    return watermark if watermark is not None or not schema.ordered else 0


def summary_of(
    rows: pl.DataFrame,
    placed: PlacedPunctuations | None,
    schema: Schema,
    watermark: int | None = None,
    ascending: Sequence[str] = (),
) -> SplitSummary | None:
    """Return the summary of these rows; None if one of them violates a promise made among them."""
    columns: dict[str, tuple[Integers, int | None]] = {column: (physical(rows, column), 0) for column in ascending}
    time = time_column(schema)
    if time is not None:
        columns[time] = integers(rows.get_column(time)), slack_of(schema, watermark)
    if placed is not None:
        stamps = columns[time][0] if time is not None else np.zeros(rows.height, dtype=np.int64)
        if Promises(schema).broken(rows, stamps, placed, placed.keys(time)).any():
            return None
    spans: dict[str, Span] = {}
    for column, (values, slack) in columns.items() if rows.height else ():
        span = _span(values, slack)
        if span is None:
            return None
        spans[column] = span
    return SplitSummary(rows.height, spans)


def _span(values: Integers, slack: int | None) -> Span | None:
    """Return the span of the values; None if they fall by more than the slack."""
    if bool((values[1:] >= values[:-1]).all()):
        return Span(int(values[0]), int(values[-1]))
    if slack is not None and int((np.maximum.accumulate(values) - values).max()) > slack:
        return None
    return Span(int(values.min()), int(values.max()))
