"""A query that prods itself on a stream that ends: time jumps to its end, and the marks up to there are not counted."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from millstream.control.mill import LocalMill


@pytest.mark.parametrize("rows", [7, 1000])
def test_a_stream_that_ends(rows: int, tmp_path: Path) -> None:
    pl.DataFrame({"ts": range(60), "v": [1] * 60}).write_parquet(tmp_path / "part.parquet")
    mill = LocalMill()
    options = f"connector = 'parquet', path = '{tmp_path}', once = 'true', max_rows_per_trigger = {rows}"
    mill.execute(f"CREATE STREAM s (ts BIGINT, v BIGINT) ORDER BY ts WITH ({options})")
    mill.add_query("q", "SELECT window_end, SUM(v) AS n, finality FROM s [RANGE 20] EMIT EARLY AT 50 %")
    mill.drain()
    expected = [(end, *row) for end in (20, 40, 60) for row in ((10, "early"), (20, "final"))]
    assert mill.take_rows("q").rows() == expected
