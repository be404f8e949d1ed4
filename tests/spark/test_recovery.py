"""A run that is killed or fails continues from its checkpoint, and no row is lost or doubled."""

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession
from tests.tries import chosen

import millstream as ms
from millstream.errors import InputError, OperatorError
from millstream_bench.soak.program import Workload, read_rows
from millstream_bench.soak.run import Soak

FILES = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{}', once = true)"
PRODUCT = "SELECT k, v * 2000000 AS p FROM s INTO parquet WITH (path = '{}')"
"""A product may not fit BIGINT."""


@pytest.mark.timeout(900)
def test_a_driver_or_a_worker_is_killed(tmp_path: Path) -> None:
    load, said = Workload(batches=10, step=2000), list[str]()
    with ms.connect(local=True, shards=2) as mill:
        mill.sql(load.statements(tmp_path / "undisturbed"))
        assert mill.await_end(timeout=120)
    soak = Soak(tmp_path / "soak", said.append, seed=3, seconds=100, load=load)
    soak.wanted = read_rows(tmp_path / "undisturbed")
    kinds = chosen(["driver", "worker"], 2)
    assert soak.disturb(kinds) == (len(kinds), True), "\n".join(said)


def test_a_row_on_which_an_operator_fails(spark: SparkSession, tmp_path: Path) -> None:
    data, results = tmp_path / "data", tmp_path / "results"
    data.mkdir()
    lines = [f"{k},{k * 1_000_000:>22},{k}" for k in range(1000)]
    good = "k,v,ts\n" + "\n".join(line.replace(" ", "0") for line in lines) + "\n"
    row = "777,0000000000000777000000,777"
    bad = good.replace(row, "777,0000000009000000000000,777")
    assert len(bad) == len(good) and bad != good
    (data / "a.csv").write_text(bad)
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.sql(FILES.format(data))
        mill.sql(PRODUCT.format(results))
        with pytest.raises(OperatorError) as caught:
            mill.await_end(timeout=120)
    error = caught.value
    assert (error.stream, error.row) == ("s", "(k = 777, v = 9000000000000, ts = 777)")
    assert "of query query_1 failed on a row of stream s (k = 777, v = 9000000000000" in error.message
    assert error.message.endswith("(v * 2000000) does not fit BIGINT with v = 9000000000000")
    assert "Traceback" not in str(error) and len(str(error).splitlines()) <= 3
    assert not list(results.glob("*.parquet"))

    (data / "a.csv").write_text(good)
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        assert mill.await_end(timeout=120)
    assert sorted(pl.read_parquet(results / "*.parquet")["k"]) == list(range(1000))


def test_a_file_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    data, results = tmp_path / "data", tmp_path / "results"
    data.mkdir()
    for number in range(4):
        frame = pl.DataFrame({"k": range(100), "v": [number] * 100, "ts": range(number * 100, number * 100 + 100)})
        frame.write_parquet(data / f"{number}.parquet")
    whole = (data / "2.parquet").read_bytes()
    broken = bytearray(whole)
    broken[4:200] = bytes(196)  # the size and the footer are right
    (data / "2.parquet").write_bytes(broken)
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        mill.sql(FILES.format(data).replace("'csv'", "'parquet', max_files_per_trigger = 1"))
        mill.sql(f"SELECT k, v FROM s INTO parquet WITH (path = '{results}')")
        with pytest.raises(InputError) as caught:
            mill.await_end(timeout=120)
    assert caught.value.code == "M5003" and "2.parquet" in caught.value.message
    assert "Traceback" not in str(caught.value)

    (data / "2.parquet").write_bytes(whole)
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        assert mill.await_end(timeout=120)
        assert mill.ended()
    with ms.connect(spark, checkpoint=tmp_path / "checkpoint", shards=2) as mill:
        assert mill.await_end(timeout=120)  # of a run that had ended already
    written = pl.read_parquet(results / "*.parquet")
    assert sorted(written.rows()) == sorted((k, v) for k in range(100) for v in range(4))
