"""Pages as bytes: one Arrow record batch (IPC) in one Spark row.

>>> page = pl.DataFrame({"k": [1, 2]})
>>> decode(encode(page)).equals(page)
True
"""

from __future__ import annotations

import io
from typing import Literal

import polars as pl

Compression = Literal["uncompressed", "lz4", "zstd"]


def encode(page: pl.DataFrame, compression: Compression = "uncompressed") -> bytes:
    buffer = io.BytesIO()
    page.rechunk().write_ipc_stream(buffer, compression=compression)
    return buffer.getvalue()


def decode(data: bytes | bytearray | memoryview) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(data))
