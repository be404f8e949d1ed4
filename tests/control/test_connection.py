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


def test_insert_reads_streams_with_a_connector(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("ts,v\n1,10\n2,20\n")
    got: list[tuple[int, ...]] = []
    with ms.connect(local=True) as mill:
        mill.sql(f"CREATE STREAM s (ts BIGINT, v BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{tmp_path}/in')")
        mill.sql("CREATE STREAM fed (ts BIGINT, v BIGINT) ORDER BY ts")
        mill.sql("SELECT v FROM s UNION ALL SELECT v FROM fed").start(lambda _, rows: got.extend(rows.rows()))
        mill.insert("fed", [(2, 200)])
        assert sorted(got) == [(10,), (20,), (200,)]
        (tmp_path / "in" / "2.csv").write_text("ts,v\n3,30\n")
        mill.punctuate("fed", "[ts < 9]")
        assert got[3:] == [(30,)]


def test_insert_reads_nothing_before_queries_start_together(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,v\n1,10\n2,20\n")
    with ms.connect(local=True) as mill:
        mill.sql(f"CREATE STREAM s (ts BIGINT, v BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{tmp_path}')")
        mill.sql("CREATE STREAM fed (ts BIGINT, v BIGINT) ORDER BY ts")
        with mill.together():
            first = mill.sql("SELECT v FROM s").start()
            mill.insert("fed", [(1, 1)])
            second = mill.sql("SELECT v FROM s").start()
        assert first.take().rows() == second.take().rows() == [(10,), (20,)]
