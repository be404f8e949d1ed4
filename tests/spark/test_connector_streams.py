"""Streams with a connector on Spark, on the machine's clock: queries that come while others read, and after them."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms

STREAM = "CREATE STREAM s (ts BIGINT, k BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{}')"
COUNTS = "SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"


def write(folder: Path, name: str, *rows: tuple[int, int]) -> None:
    folder.mkdir(exist_ok=True)
    draft = folder / f".{name}"
    draft.write_text("ts,k\n" + "".join(f"{ts},{k}\n" for ts, k in rows))
    draft.rename(folder / name)


def wait_for(done: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def counts(mill: ms.Connection) -> tuple[int, ...]:
    return tuple(mill.mill.counts("s").values())


@pytest.mark.timeout(900)
def test_queries_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write(folder, "1.csv", (1, 1), (5, 2), (12, 1))
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.sql(STREAM.format(folder))
        plain = mill.sql("SELECT ts, k FROM s").start()
        wait_for(lambda: counts(mill) == (3, 0, 0))
        assert sorted(plain.take().rows()) == [(1, 1), (5, 2), (12, 1)]

        counted = mill.sql(COUNTS).start(name="counted")  # another group of shards
        write(folder, "2.csv", (11, 1), (14, 2), (31, 2))
        wait_for(lambda: counts(mill) == (5, 1, 0))
        assert sorted(plain.take().rows()) == [(14, 2), (31, 2)]
        assert counted.take().rows() == [(20, 2, 1)]
        assert (plain.progress().rows_in, counted.progress().rows_in) == (6, 3)
        plain.stop()
        counted.stop()

        write(folder, "3.csv", (30, 1), (45, 1))
        time.sleep(1.0)
        assert counts(mill) == (5, 1, 0)
        again = mill.sql(COUNTS).start(name="again")
        wait_for(lambda: counts(mill) == (6, 2, 0))
        again.stop()
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        write(folder, "4.csv", (44, 1), (46, 1))
        last = mill.sql("SELECT ts, k FROM s").start()
        wait_for(lambda: counts(mill) == (7, 3, 0))
        assert last.take().rows() == [(46, 1)]
        last.stop()
        mill.sql("DROP STREAM s")
        write(tmp_path / "t", "1.csv", (1, 7))
        mill.sql(STREAM.format(tmp_path / "t"))
        new = mill.sql("SELECT ts, k FROM s").start()
        wait_for(lambda: counts(mill) == (1, 0, 0))
        assert new.take().rows() == [(1, 7)]


@pytest.mark.timeout(900)
def test_queries_start_together_in_a_job_that_runs(spark: SparkSession, tmp_path: Path) -> None:
    """They see the same rows, and their feedback comes before the first one."""
    write(tmp_path / "r", "1.csv", (1, 1))
    write(tmp_path / "s", "1.csv", (1, 1), (5, 2), (12, 1))
    with ms.connect(spark, shards=2) as mill:
        mill.sql(STREAM.format(tmp_path / "r").replace("STREAM s", "STREAM r"))
        running = mill.sql("SELECT ts FROM r").start()
        wait_for(lambda: running.take().height == 1)
        mill.sql(STREAM.format(tmp_path / "s"))
        with mill.together():
            plain = mill.sql("SELECT ts, k FROM s").start()
            time.sleep(1.0)
            counted = mill.sql(COUNTS).start()
            time.sleep(1.0)
            counted.feedback("~[k = 1]")
        write(tmp_path / "s", "2.csv", (30, 1))
        wait_for(lambda: counts(mill) == (4, 0, 0))
        assert sorted(plain.take().rows()) == [(1, 1), (5, 2), (12, 1), (30, 1)]
        assert counted.take().rows() == [(10, 2, 1)]
        write(tmp_path / "r", "2.csv", (2, 1))
        wait_for(lambda: running.take().height == 1)
