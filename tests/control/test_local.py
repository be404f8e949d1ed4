"""Without Spark and Java: connections and files of statements in this process, killed and resumed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import millstream as ms
from millstream.config import Options
from millstream.control.base import Mill
from millstream.control.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.recovery import recovered
from millstream.control.runner import run_file
from millstream.errors import InputError, MillstreamError, OptionError

STATEMENTS = """
CREATE STREAM bids (auction BIGINT, price BIGINT, ts BIGINT) ORDER BY ts
  WITH (connector = 'csv', path = '{folder}/bids', max_files_per_trigger = 1, once = true);
CREATE STREAM names (id BIGINT, name VARCHAR, ts BIGINT) ORDER BY ts
  WITH (connector = 'csv', path = '{folder}/names', max_files_per_trigger = 1, once = true);
CREATE QUERY joined AS SELECT n.name, b.price FROM bids b JOIN names n ON b.auction = n.id
  INTO parquet WITH (path = '{folder}/{out}/joined');
CREATE QUERY by_name AS SELECT window_end, name, SUM(price) AS total
  FROM (SELECT n.name AS name, b.price AS price FROM bids b [RANGE 50] JOIN names n [RANGE 50] ON b.auction = n.id)
  [RANGE 20] GROUP BY name INTO parquet WITH (path = '{folder}/{out}/by_name');
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for stream in ("bids", "names"):
        (tmp_path / stream).mkdir()
    for file in range(8):
        times = range(10 * file, 10 * file + 10)
        bids = pl.DataFrame({"auction": [t % 7 for t in times], "price": [3 * t for t in times], "ts": [*times]})
        names = pl.DataFrame({"id": [t % 7 for t in times], "name": [f"n{t % 3}" for t in times], "ts": [*times]})
        bids.write_csv(tmp_path / "bids" / f"{file}.csv")
        names.write_csv(tmp_path / "names" / f"{file}.csv")
    return tmp_path


def written(folder: Path, out: str) -> dict[str, list[tuple[object, ...]]]:
    return {
        name: sorted(pl.read_parquet(folder / out / name / "*.parquet", missing_columns="raise").rows())
        for name in ("joined", "by_name")
    }


def said(folder: Path, out: str, checkpoint: Path | None = None, **options: object) -> str:
    console = Console(file=io.StringIO(), width=120)
    text = STATEMENTS.format(folder=folder, out=out)
    run_file(text, console, local=True, checkpoint=checkpoint, **options)  # type: ignore[arg-type]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("shards", [1, 3])
def test_a_file_of_statements(folder: Path, shards: int) -> None:
    assert "all streams have ended" in said(folder, "out", shards=shards)
    found = written(folder, "out")
    rows = [(t % 7, 3 * t) for t in range(80)]
    assert found["joined"] == sorted((f"n{t % 3}", price) for t in range(80) for a, price in rows if a == t % 7)
    assert len(found["by_name"]) > 10


KILLED = """
import os, sys
from pathlib import Path
from millstream.control.job import Job
from tests.control.test_local import said
left, deliver = int(sys.argv[2]), Job.deliver

def dies(job, batch, *args):
    global left
    if sys.argv[3] == "late":
        deliver(job, batch, *args)
    left -= 1
    if not left:
        os._exit(9)
    if sys.argv[3] != "late":
        deliver(job, batch, *args)

Job.deliver = dies
said(Path(sys.argv[1]), "killed", Path(sys.argv[1]) / "checkpoint", shards=2)
"""


@pytest.mark.parametrize("moment", ["early", "late"])
def test_a_process_that_is_killed(folder: Path, moment: str) -> None:
    """Before a batch is delivered, or after that and before it is committed."""
    said(folder, "whole", shards=2)
    codes = []
    for left in (5, 3, 4, 99):
        made = [sys.executable, "-c", KILLED, str(folder), str(left), moment]
        codes.append(subprocess.run(made, cwd=Path(__file__).parents[2], check=False, capture_output=True).returncode)
    assert codes == [9, 9, 9, 0]
    assert written(folder, "killed") == written(folder, "whole")


def test_a_connection(folder: Path) -> None:
    heard: list[int] = []
    with ms.connect(local=True, checkpoint=folder / "kept") as mill:
        mill.on_progress(lambda progress: heard.append(progress.batch))
        mill.sql("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
        query = mill.sql("SELECT window_end, COUNT(*) AS n FROM s [RANGE 10]").start()
        mill.insert("s", [(1, 3), (2, 4), (1, 11)])
        assert query.take().rows() == [(10, 2)] and query.progress().state_rows == 1 and heard
        with pytest.raises(OptionError, match="M6057"):
            mill.sql("SELECT k FROM s").to_df()
    with ms.connect(local=True, checkpoint=folder / "kept") as mill:
        mill.insert("s", [(1, 25)])
        assert mill.queries[0].take().rows() == [(20, 1)]
        assert mill.mill.counts("s") == {"accepted": 4, "late": 0, "bad": 0}


def test_spark_is_not_imported(folder: Path) -> None:
    script = "import sys; from pathlib import Path; from tests.control.test_local import said; "
    script += f"said(Path({str(folder)!r}), 'alone'); print([name for name in sys.modules if 'pyspark' in name])"
    made = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert made.stdout == "[]\n", made.stderr


def test_a_mill_goes_on_from_its_folder(tmp_path: Path) -> None:
    mill = LocalMill(Options(shards=2), tmp_path)
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
    mill.add_query("q", "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k")
    mill.insert("s", [(1, 1), (2, 2), (1, 3)])
    mill.batch()
    mill.jobs.close()
    again = LocalMill(Options(shards=2), tmp_path)
    again.insert("s", [(1, 12)])
    again.batch()
    assert sorted(again.take_rows("q").rows()) == [(1, 2), (2, 1)]
    again.jobs.close()


def test_checkpoints_of_another_host_are_refused(tmp_path: Path) -> None:
    mill = Mill(LocalJobs(tmp_path))
    mill.execute("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT k FROM s")
    mill.jobs.close()
    path = tmp_path / "job-1" / "job.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "Spark"}))
    with pytest.raises(OptionError, match=r"M6058: the state in .* is kept by Spark, not by a single process"):
        recovered(LocalJobs(tmp_path))


@pytest.mark.parametrize("damage", ["not a database", "cut off", "a page"])
def test_a_damaged_database(tmp_path: Path, damage: str) -> None:
    mill = LocalMill(Options(), tmp_path)
    mill.execute("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT DISTINCT k FROM s")
    for number in range(20):
        mill.insert("s", [(number * 100 + row,) for row in range(100)])
        mill.batch()
    mill.jobs.close()
    path = tmp_path / "job-1" / "state.db"
    data = path.read_bytes()
    path.write_bytes({"not a database": b"x" * 5000, "cut off": data[: len(data) // 2]}.get(damage, data))
    if damage == "a page":
        path.write_bytes(data[:8192] + b"\xff" * 4096 + data[12288:])
    with pytest.raises(MillstreamError) as caught:
        again = LocalMill(Options(), tmp_path)
        again.insert("s", [(1,)])
        again.take_rows("q")
    assert isinstance(caught.value, InputError) and caught.value.code in ("M5022", "M5023") and caught.value.hint
