"""Arrow batches of a Spark DataFrame → pages by shard, in the worker that has the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark import TaskContext

from millstream.algebra.schema import Schema
from millstream.ingest.paged.split import GivenSplit, SplitRows
from millstream.ingest.rows import read_frame
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
    stream: StreamDefinition, columns: tuple[str, ...], targets: tuple[Target, ...], batches: Iterator[Any]
) -> Iterator[Any]:
    schema = stream.schema
    narrow = Schema(tuple(a for a in schema.attributes if a.name in columns), schema.kind, schema.time, schema.unit)
    context = TaskContext.get()
    seq = FIRST_SEQ + (context.partitionId() << 20 if context is not None else 0)
    for held in _gathered(batches):
        frame = pl.from_arrow(pa.Table.from_batches(held))
        assert isinstance(frame, pl.DataFrame)
        now = int(frame.get_column(NOW)[0])
        read = read_frame(frame.drop(NOW), narrow, stream.required)
        split = GivenSplit(SplitRows(read.frame, read.bad))
        packed = pack(stream, split, columns, targets, now=now)
        yield row_batch([(label, seq, SPLIT, stream.name, *part.to_bytes()) for label, part in packed])
        seq += 1


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
