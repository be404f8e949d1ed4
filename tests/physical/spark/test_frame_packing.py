"""Arrow batches of a partition become pages. No session is needed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from millstream.control.mill import LocalMill
from millstream.physical.spark.frame_packing import NOW, pack_frame
from millstream.physical.wire.shard_split import ShardSplit, Target

STAMPS = [0, 1_700_000_000_123_456]


def packed(columns: dict[str, Any], declared: str, partition: int = 0) -> list[ShardSplit]:
    mill = LocalMill()
    mill.execute(f"CREATE STREAM s ({declared}) WITH (connector = 'dataframe')")
    height = len(next(iter(columns.values())))
    batch = pa.RecordBatch.from_pydict({**columns, NOW: pa.array([7] * height, pa.int64())})
    stream = mill.catalog.stream("s")
    pages = pack_frame(stream, stream.schema.names, (Target((0,), None),), partition, iter([batch]))
    rows = [row for page in pages for row in page.to_pylist()]
    return [ShardSplit.from_bytes("s", row["head"], row["page"]) for row in rows]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+05:30", "GMT+05:30", None])
def test_timestamps_do_not_depend_on_the_time_zone_of_the_session(zone: str | None) -> None:
    (split,) = packed({"ts": pa.array(STAMPS, pa.timestamp("us", zone))}, "ts TIMESTAMP")
    assert split.rows.schema == {"ts": pl.Datetime("us")}
    assert split.rows["ts"].to_physical().to_list() == STAMPS


def test_small_numbers_and_intervals() -> None:
    lengths = [timedelta(seconds=1), timedelta(days=-2)]
    columns = {"a": pa.array([1, 2], pa.int8()), "i": pa.array(lengths, pa.duration("us"))}
    (split,) = packed(columns, "a INT, i INTERVAL", partition=3)
    assert split.rows.rows() == [(1, lengths[0]), (2, lengths[1])]
    assert (split.now, split.partition, split.unordered) == (7, 3, False)


def test_rows_that_do_not_fit() -> None:
    far = datetime(9999, 12, 31)
    columns = {"ts": pa.array([None, far, 1 << 60], pa.timestamp("us", "UTC"))}
    (split,) = packed(columns, "ts TIMESTAMP")
    assert split.rows["ts"].to_list() == [None, far] and split.bad is not None and split.bad.height == 1
