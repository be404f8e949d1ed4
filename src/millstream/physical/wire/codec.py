"""Pages as bytes: one Arrow record batch (IPC) in one Spark row.

>>> page = pl.DataFrame({"k": [1, 2]})
>>> decode(encode(page)).equals(page)
True
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

import polars as pl
import pyarrow as pa

Compression = Literal["uncompressed", "lz4", "zstd"]
PackedRow = tuple[int, int, int, str, bytes, bytes]
"""A row as the source of a job emits it: shard, seq, kind, stream, head, page."""


def encode(page: pl.DataFrame, compression: Compression = "uncompressed") -> bytes:
    buffer = io.BytesIO()
    page.rechunk().write_ipc_stream(buffer, compression=compression)
    return buffer.getvalue()


def decode(data: bytes | bytearray | memoryview) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(data))


def row_batch(rows: Sequence[PackedRow]) -> pa.RecordBatch:
    """At least one row, as Spark reads it."""
    types = (pa.int32(), pa.int64(), pa.int32(), pa.string(), pa.binary(), pa.binary())
    arrays = [pa.array(list(values), type_) for values, type_ in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["shard", "seq", "kind", "stream", "head", "page"])
