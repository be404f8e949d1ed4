"""Arrow batches of a Spark DataFrame → pages by shard, in the worker that has the rows.

Whether a row is bad does not depend on the columns that queries read: the columns that can be bad are always among the
Arrow columns. A DataFrame has the types of its stream, so these are the required ones, dates and timestamps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schedule import Grid
from millstream.algebra.types import Type
from millstream.ingest.paged.split import GivenSplit, SplitRows, narrowed
from millstream.ingest.rows import named_texts, read_frame
from millstream.logical.catalog import StreamDefinition
from millstream.physical.wire.address import SPLIT
from millstream.physical.wire.codec import row_batch
from millstream.physical.wire.packing import pack
from millstream.physical.wire.shard_split import Target

NOW = "__now"
PIECE_ROWS = 200_000
FIRST_SEQ = 1 << 40
"""Orders the pages of DataFrames after those that the job has read itself."""


def pack_frame(
    stream: StreamDefinition,
    columns: tuple[str, ...],
    targets: tuple[Target, ...],
    partition: int,
    batches: Iterator[Any],
    unwanted: tuple[Pattern, ...] = (),
    grids: tuple[Grid, ...] = (),
) -> Iterator[Any]:
    """Pack the rows of one partition of a batch, without those that match an `unwanted` pattern."""
    unwanted = tuple(pattern for pattern in unwanted if pattern.attributes <= set(columns))
    schema, judged = stream.schema, judged_columns(stream)
    narrow = schema.with_attributes([a for a in schema if a.name in columns or a.name in judged])
    seq = FIRST_SEQ + (partition << 20)
    for held in _gathered(batches):
        frame = pl.from_arrow(_in_utc(pa.Table.from_batches(held)))
        assert isinstance(frame, pl.DataFrame)
        now = int(frame.get_column(NOW)[0])
        read = read_frame(frame.select(narrow.names), narrow, stream.required)
        bad = read.bad
        if bad.height:
            bad = bad.with_columns(pl.Series("input", named_texts(frame.select(judged), read.bad_places), pl.String))
        split = GivenSplit(SplitRows(narrowed(read.frame, columns), bad))
        packed = pack(stream, split, columns, targets, now, partition, unwanted, grids)
        yield row_batch([(label, seq, SPLIT, stream.name, *part.to_bytes()) for label, part in packed])
        seq += 1


def judged_columns(stream: StreamDefinition) -> tuple[str, ...]:
    """The columns by which a row of a DataFrame may be bad."""
    return tuple(a.name for a in stream.schema if a.name in stream.required or a.type in (Type.TIMESTAMP, Type.DATE))


def _in_utc(table: pa.Table) -> pa.Table:
    """Timestamps as UTC without a time zone. Arrow's label is the session's time zone, the value an instant."""
    naive = pa.timestamp("us")
    fields = [field.with_type(naive) if pa.types.is_timestamp(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def _gathered(batches: Iterator[Any]) -> Iterator[list[Any]]:
    """Collect batches until they hold `PIECE_ROWS` rows."""
    held: list[Any] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= PIECE_ROWS:
            yield held
            held, count = [], 0
    if count:
        yield held
