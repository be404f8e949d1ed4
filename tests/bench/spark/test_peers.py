"""Other engines: a runner of another interpreter is measured, a failing one is skipped."""

import sys
from pathlib import Path

import pytest

from millstream_bench.spark.throughput.data import prepare
from millstream_bench.spark.throughput.golden import golden
from millstream_bench.spark.throughput.peers import lines, measure
from millstream_bench.spark.throughput.workloads import W1

RUNNER = """
import sys, time
sys.path.insert(0, {peers!r})
from common import COLUMNS, main
import polars as pl

def perform(task):
    time.sleep(0.3)
    rows = pl.read_parquet(task["files"]["bid"], columns=list(COLUMNS["bid"]))
    made = rows.group_by(pl.col("ts").dt.truncate("10s"), "auction").agg(
        count=pl.len(), max=pl.col("price").max(), sum=pl.col("price").sum())
    return {{"rows": made.height, **{{name: int(made[name].sum()) for name in ("count", "max", "sum")}}}}

main(perform)
"""


def test_a_runner_is_measured(tmp_path: Path) -> None:
    data = prepare(tmp_path / "data", 100_000, events_per_file=50_000)
    runner = tmp_path / "polars_runner.py"
    runner.write_text(RUNNER.format(peers=str(Path("bench/peers").absolute())))
    found = measure(sys.executable, runner, W1, data)
    assert found is not None and found["answers"] == golden(W1, data).answers
    assert found["rows"] == data.rows("bid") and 0 < found["rows_per_s"] < found["rows"] / 0.3
    table = lines([{"name": "w1", "spark_rows_per_s": 1.0, "spark_rows_per_cpu_s": 1.0, "peers": {"polars": found}}])
    assert any("polars" in line for line in table)


def test_a_runner_that_fails_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = prepare(tmp_path / "data", 100_000, events_per_file=50_000)
    runner = tmp_path / "broken_runner.py"
    runner.write_text("raise SystemExit('no join')")
    assert measure(sys.executable, runner, W1, data) is None
    assert "broken_runner w1: no join" in capsys.readouterr().out
