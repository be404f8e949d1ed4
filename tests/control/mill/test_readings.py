"""Streams with a connector: the counts of several jobs, the rows of fed streams, a mill that ends at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.config import Options
from millstream.control.connecting import connect
from millstream.control.mill import LocalMill
from millstream.control.observe.progress import progress_of
from millstream.control.observe.stream_progress import rows_in

COLUMNS = "ts BIGINT, k BIGINT, v BIGINT"
SUMS = "SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k"
TWO_STAGES = f"SELECT window_end, MAX(total) AS most FROM ({SUMS}) sums GROUP BY window_end"


def write(folder: Path, name: str, *rows: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(["ts,k,v", *rows, ""]))


def declared(folder: Path) -> str:
    return f"CREATE STREAM s ({COLUMNS}) ORDER BY ts WITH (connector = 'csv', path = '{folder}')"


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_that_two_jobs_read_count_once(tmp_path: Path, shards: int) -> None:
    write(tmp_path / "s", "1.csv", "1,1,1", "2,2,2", "x,1,1", "1,3,3", "9,4,4")
    mill = LocalMill(Options.read(shards=shards))
    mill.execute(declared(tmp_path / "s"))
    mill.add_query("one", "SELECT ts FROM s WHERE k > 0")
    mill.add_query("sums", SUMS)
    mill.add_query("two", TWO_STAGES)
    mill.add_query("late", "SELECT k FROM s__late")
    mill.drain()
    assert mill.counts("s") == {"accepted": 3, "late": 1, "bad": 1}
    assert "s (" in mill.execute("SHOW STREAMS") and "3 accepted, 1 late, 1 bad" in mill.execute("SHOW STREAMS")
    assert rows_in(mill) == 5
    assert {progress_of(mill, name).rows_in for name in mill.queries} == {5}


def test_fed_rows_are_rows_in(tmp_path: Path) -> None:
    mill = LocalMill(Options.read(shards=3))
    mill.execute(f"CREATE STREAM s ({COLUMNS}) ORDER BY ts; CREATE STREAM t ({COLUMNS})")
    mill.add_query("q", "SELECT k FROM s")
    mill.add_query("r", SUMS)
    mill.insert("s", [(5, 1, 1), (4, 2, 2), (6, 3, 3), (7, "bad", 4)])
    mill.insert("t", [(5, 1, 1)])
    mill.batch()
    assert mill.take_rows("q").height == 2
    assert progress_of(mill, "q").rows_in == progress_of(mill, "r").rows_in == 4
    assert rows_in(mill) == 5


@pytest.mark.parametrize("first", ["SELECT ts, k FROM s", SUMS, TWO_STAGES])
@pytest.mark.parametrize("second", ["SELECT ts, k FROM s", SUMS, TWO_STAGES])
def test_a_stream_stands_where_it_was_left_also_after_a_restart(tmp_path: Path, first: str, second: str) -> None:
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "s"
    write(folder, "1.csv", "1,1,1", "20,2,2", "3,1,1")
    with connect(local=True, checkpoint=checkpoint, shards=2) as mill:
        mill.sql(declared(folder))
        mill.sql(first).start(name="q")
        mill.mill.drain()
        mill.sql("DROP QUERY q")
    with connect(local=True, checkpoint=checkpoint, shards=2) as mill:
        write(folder, "2.csv", "19,1,1", "21,1,1", "40,1,1")
        mill.mill.drain()
        assert mill.mill.counts("s") == {"accepted": 2, "late": 1, "bad": 0}
        mill.sql(second).start(name="q")
        mill.mill.drain()
        assert mill.mill.counts("s") == {"accepted": 4, "late": 2, "bad": 0}
        mill.sql("DROP QUERY q; DROP STREAM s")
        mill.sql(declared(folder))
    with connect(local=True, checkpoint=checkpoint, shards=2) as mill:
        assert mill.mill.counts("s") == {"accepted": 0, "late": 0, "bad": 0}
        query = mill.sql("SELECT ts FROM s").start(name="q")
        mill.mill.drain()
        assert sorted(query.take()["ts"]) == [1, 20, 21, 40]
        assert mill.mill.counts("s") == {"accepted": 4, "late": 2, "bad": 0}


def test_queries_of_two_stages_added_later_see_only_new_rows(tmp_path: Path) -> None:
    write(tmp_path / "s", "1.csv", "1,1,10", "12,1,20")
    mill = LocalMill(Options.read(shards=2))
    mill.execute(declared(tmp_path / "s").replace("ORDER BY ts", "ORDER BY ts WATERMARK FOR ts AS ts - 0"))
    mill.add_query("one", SUMS)
    mill.drain()
    mill.add_query("two", TWO_STAGES)
    write(tmp_path / "s", "2.csv", "13,1,3", "40,1,1")
    mill.drain()
    assert sorted(mill.take_rows("one").rows()) == [(10, 1, 10), (20, 1, 23)]
    assert mill.take_rows("two").rows() == [(20, 3)]


def test_a_finite_query_added_after_the_end_has_ended(tmp_path: Path) -> None:
    write(tmp_path / "s", "1.csv", "1,1,10")
    with connect(local=True, shards=2) as mill:
        mill.sql(declared(tmp_path / "s").replace("path", "once = 'true', path"))
        mill.sql("SELECT ts FROM s").start()
        assert mill.await_end(timeout=20)
        for text in (SUMS, TWO_STAGES, "SELECT 1 AS one FROM s", "SELECT input FROM s__bad"):
            added = mill.sql(text).start()
            assert mill.await_end(timeout=20)
            assert added.take().is_empty()
