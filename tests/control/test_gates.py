"""Guards that do not pay sleep for a while; results are the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.observe.progress import progress_of
from millstream.control.observe.stream_progress import stream_progress
from millstream.runtime.engine import gate
from millstream.runtime.engine.gate import GuardReading

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts"


@pytest.fixture(autouse=True)
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "WINDOW", 100)
    monkeypatch.setattr(gate, "REST", 2)


def guards_of(mill: LocalMill, kind: str) -> list[GuardReading]:
    mill.sync()
    operators = progress_of(mill, "q").operators
    return [test for o in operators if o.name.startswith(kind) for test in o.reading.tests]


def rows(first: int, count: int = 100) -> list[tuple[int, int, int]]:
    return [(n % 50, n, n) for n in range(first, first + count)]


def test_a_guard_that_drops_nothing_sleeps_and_is_tried_again() -> None:
    mill = LocalMill(Options.read())
    mill.execute(STREAM)
    mill.add_query("q", "SELECT k, v, ts FROM s WHERE v >= 0")
    mill.add_query("all", "SELECT k, v, ts FROM s WHERE v >= 0 AND k >= 0")
    mill.feedback("q", "~[k = 77]")
    for batch in range(5):
        mill.insert("s", rows(batch * 100))
        mill.batch()
    (found,) = guards_of(mill, "Project") or guards_of(mill, "Select")
    assert (found.tested, found.dropped, found.asleep) == (200, 0, True)  # two batches of rest between two tests
    (top,) = guards_of(mill, "sink")
    assert (top.tested, top.asleep) == (500, False)
    mill.insert("s", [(77, 1, 600), (5, 5, 601)])
    mill.batch()
    assert mill.take_rows("q").rows()[-1] == (5, 5, 601)
    assert len([row for row in mill.take_rows("all").rows() if row[0] == 77]) == 1


def test_new_patterns_wake_a_guard() -> None:
    mill = LocalMill(Options.read())
    mill.execute(STREAM)
    mill.add_query("q", "SELECT k, v, ts FROM s WHERE v >= 0")
    mill.add_query("all", "SELECT k, v, ts FROM s WHERE v >= 0 AND k >= 0")
    mill.feedback("q", "~[k = 77]")
    mill.insert("s", rows(0))
    mill.batch()
    assert [test.asleep for test in guards_of(mill, "Select")] == [True]
    mill = mill.restarted()
    assert [test.asleep for test in guards_of(mill, "Select")] == [True]
    mill.feedback("q", "~[k < 10]")
    mill.batch()
    assert [test.asleep for test in guards_of(mill, "Select")] == [False]


def test_the_guard_of_an_aggregate_does_not_sleep() -> None:
    mill = LocalMill(Options.read())
    mill.execute(STREAM)
    mill.add_query("q", "SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 1000] GROUP BY k")
    mill.add_query("all", "SELECT k, v FROM s")
    mill.insert("s", [(77, 1, 0)])
    mill.feedback("q", "~[k = 77]")
    for batch in range(4):
        mill.insert("s", rows(batch * 100))
        mill.batch()
    (found,) = guards_of(mill, "WindowAggregate")
    assert (found.tested, found.asleep) == (400, False)
    mill.insert("s", [(77, 1, 500), (0, 0, 1000)])
    mill.batch()
    assert 77 not in {row[1] for row in mill.take_rows("q").rows()}


def test_a_source_that_leaves_out_nothing_sleeps(tmp_path: Path) -> None:
    for number in range(8):
        pl.DataFrame(rows(number * 100), schema=["k", "v", "ts"], orient="row").write_parquet(
            tmp_path / f"{number}.parquet"
        )
    mill = LocalMill(Options.read(shards=2))
    mill.execute(f"{STREAM} WITH (connector = 'parquet', path = '{tmp_path}', max_files_per_trigger = 1)")
    mill.add_query("q", "SELECT k, v, ts FROM s")
    mill.feedback("q", "~[k = 77]")
    mill.drain()
    found = stream_progress(mill)["s"]
    assert found.skipped.rows == 0 and 100 <= found.skipped.tested < 500
    assert found.unwanted == ("[k = 77]",)
    assert mill.take_rows("q").height == 800
    pl.DataFrame({"k": [77] * 400, "v": 0, "ts": 900}).write_parquet(tmp_path / "8.parquet")
    mill.feedback("q", "~[k = 78]")  # other patterns: it is tried at once
    mill.drain()
    assert stream_progress(mill)["s"].skipped.rows == 400
    assert not mill.take_rows("q").height
    assert not stream_progress(mill)["s"].asleep
