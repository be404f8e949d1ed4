"""The cost of a batch by the size of the state, without Spark: the state is as large as asked for, and what is written
follows what changes."""

import json
from pathlib import Path

import pytest

from millstream_bench.spark.state import run as state
from millstream_bench.spark.state.input import write
from millstream_bench.spark.state.rig import without_spark


@pytest.mark.parametrize("size", [5_000, 50_000])
def test_the_state_has_its_size(tmp_path: Path, size: int) -> None:
    write(tmp_path, size, 4, rows=500)
    batches = without_spark(tmp_path, size)
    full = [batch for batch in batches if batch.state_rows > size // 2]
    assert len(full) >= 5
    assert all(size <= batch.state_rows <= size + 500 for batch in full)
    assert all(batch.written < 40_000 for batch in full[2:])


def test_table_and_plot(tmp_path: Path) -> None:
    made = state.run(out=tmp_path, sizes=(3_000, 6_000), batches=6, warm_up=2, spark=False)
    assert made == json.loads((tmp_path / "state.json").read_text())
    assert [case["size"] for case in made] == [3_000, 6_000] and all(case["batches"] >= 4 for case in made)
    assert (tmp_path / "state.png").stat().st_size > 1000
