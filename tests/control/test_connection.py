"""A connection without Spark."""

from __future__ import annotations

from pathlib import Path

import millstream as ms


def test_take_reads_streams_with_a_connector(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("ts,v\n1,10\n2,20\n")
    with ms.connect(local=True) as mill:
        mill.sql(f"CREATE STREAM s (ts BIGINT, v BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{tmp_path}/in')")
        query = mill.sql("SELECT v FROM s").start()
        assert query.take().rows() == [(10,), (20,)]
        (tmp_path / "in" / "2.csv").write_text("ts,v\n3,30\n")
        assert query.take().rows() == [(30,)]
