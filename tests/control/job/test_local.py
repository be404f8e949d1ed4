"""Without Spark and Java: connections and files of statements in this process, killed and resumed."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
from rich.console import Console

import millstream as ms
from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.mill.base import Mill
from millstream.control.mill.recovery import recovered
from millstream.control.runner import run_file
from millstream.errors import InputError, MillstreamError, OptionError
from tests.paths import ROOT
from tests.tries import chosen

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
from threading import Thread
from millstream.control.job.base import Job
from tests.control.job.test_local import said
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


@pytest.mark.parametrize("moment", chosen(["early", "late"], 2))
def test_a_process_that_is_killed(folder: Path, moment: str) -> None:
    """Before a batch is delivered, or between its delivery and its commit."""
    said(folder, "whole", shards=2)
    codes = []
    for left in (5, 3, 4, 99):
        made = [sys.executable, "-c", KILLED, str(folder), str(left), moment]
        codes.append(subprocess.run(made, cwd=ROOT, check=False, capture_output=True).returncode)
    assert codes == [9, 9, 9, 0]
    assert written(folder, "killed") == written(folder, "whole")


def test_a_file_is_not_compared_with_half_a_checkpoint(folder: Path) -> None:
    """A driver's log that is cut off is refused before the file's statements are compared with its own."""
    said(folder, "out", folder / "kept")
    path = folder / "kept" / "driver.log"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r"M5025: .*driver\.log"):
        said(folder, "out", folder / "kept")


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
    script = "import sys; from pathlib import Path; from tests.control.job.test_local import said; "
    script += f"said(Path({str(folder)!r}), 'alone'); print([name for name in sys.modules if 'pyspark' in name])"
    made = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert made.stdout == "[]\n", made.stderr


def test_a_mill_continues_from_its_folder(tmp_path: Path) -> None:
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


def logged(folder: Path) -> Path:
    mill = LocalMill(Options(), folder)
    mill.execute("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT DISTINCT k FROM s")
    for number in range(5):
        mill.insert("s", [(number,)])
        mill.batch()
    mill.close()
    return folder / "job-1"


@pytest.mark.parametrize("name", ["driver.log", "job-1/control.log"])
def test_damage_in_the_middle_of_a_log(tmp_path: Path, name: str) -> None:
    path = logged(tmp_path).parent / name
    data = bytearray(path.read_bytes())
    for place in range(20, len(data) - 200, max(1, len(data) // 9)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :])
        with pytest.raises(InputError, match=r"M502[357]"):
            LocalMill(Options(), tmp_path)


def test_a_torn_record_had_not_been_written(tmp_path: Path) -> None:
    """The last of the driver's log, when the process was killed."""
    mill = LocalMill(Options(), tmp_path / "run")
    mill.execute("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT k FROM s")
    mill.sync()
    mill.execute("CREATE STREAM t (k BIGINT)")
    shutil.copytree(tmp_path / "run", tmp_path / "killed")
    mill.close()
    path = tmp_path / "killed" / "driver.log"
    path.write_bytes(path.read_bytes()[:-7])
    again = LocalMill(Options(), tmp_path / "killed")
    assert set(again.queries) == {"q"} and "t" not in again.catalog
    again.close()


def test_a_closed_mill_continues(tmp_path: Path) -> None:
    logged(tmp_path)
    mill = LocalMill(Options(), tmp_path)
    mill.insert("s", [(3,), (7,)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(7,)]
    mill.close()


@pytest.mark.parametrize("kept", [False, True])
def test_a_sink_that_raises_may_stop_the_job(tmp_path: Path, kept: bool) -> None:
    """With `on_error = 'stop'`, the last query does."""
    found: list[tuple[int, int]] = []

    def sink(batch: int, rows: pl.DataFrame) -> None:
        if not tmp_path.joinpath("mended").exists():
            raise ValueError("boom")
        found.extend(rows.rows())

    checkpoint = tmp_path / "kept" if kept else None
    mill = ms.connect(local=True, checkpoint=checkpoint)
    mill.sql("CREATE STREAM s (k BIGINT)")
    query = mill.sql("SELECT k FROM s").start(sink, on_error="stop")
    with pytest.raises(OptionError, match="M6044: sink of the program of query 'query_1' failed: ValueError: boom"):
        mill.insert("s", [(1,)])
    for _ in range(2):
        with pytest.raises(OptionError, match="M6044"):
            mill.check()
    tmp_path.joinpath("mended").touch()
    query.start()
    mill.insert("s", [(2,)])
    assert found == [(1,), (2,)]
    mill.close()
    with pytest.raises(OptionError, match="M6059"):
        mill.insert("s", [(1,)])


def test_inserted_rows_are_processed() -> None:
    found: list[tuple[int, ...]] = []
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        mill.sql("SELECT k FROM s").start(lambda _, rows: found.extend(rows.rows()))
        mill.insert("s", [(1,), (2,)])
    assert found == [(1,), (2,)]


def test_threads_may_insert() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        query = mill.sql("SELECT k FROM s").start()
        threads = [Thread(target=lambda: [mill.insert("s", [(k,)]) for k in range(200)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        found = [row for _ in range(20) for row in query.take().rows()]
        for thread in threads:
            thread.join()
        assert len(found) + query.take().height == 600 and mill.mill.counts("s")["accepted"] == 600


def test_a_file_without_queries_ends(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    run_file("CREATE STREAM s (k BIGINT); SHOW STREAMS", console, local=True, checkpoint=None)
    assert isinstance(console.file, io.StringIO) and console.file.getvalue().endswith("no query runs\n")


def test_streams_with_a_connector_are_shown(folder: Path) -> None:
    mill = LocalMill(Options(shards=2))
    mill.execute(STATEMENTS.format(folder=folder, out="shown"))
    assert "0 accepted" in mill.execute("SHOW STREAMS")
    mill.drain()
    assert mill.execute("SHOW STREAMS").count("80 accepted, 0 late, 0 bad") == 2


def test_time_is_not_promised_while_no_operator_waits() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM a (k BIGINT, ts TIMESTAMP) ORDER BY ts MAX SKEW 2 SECONDS")
    mill.add_query("q", "SELECT window_end, k, COUNT(*) AS c FROM a [RANGE 10 SECONDS] GROUP BY k")
    mill.feed_line("a", "0 | 24")
    for _ in range(2):
        mill.advance(10_000_000)
    assert mill.take_rows("q").height == 1
    mill.feed_line("a", "1 | 36")
    mill.batch()
    assert mill.counts("a")["late"] == 0


def test_a_sink_may_feed_a_stream() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT); CREATE STREAM t (k BIGINT)")
        mill.sql("SELECT k FROM s").start(lambda _, rows: mill.insert("t", rows) if rows.height else None)
        query = mill.sql("SELECT k + 1 AS k FROM t").start()
        mill.insert("s", [(1,), (2,)])
        assert sorted(query.take().rows()) == [(2,), (3,)]


def test_a_source_that_is_repaired(tmp_path: Path) -> None:
    """A batch that cannot be read changes nothing: it is read again."""
    mill = LocalMill()
    mill.execute(f"CREATE STREAM s (k BIGINT) WITH (connector = 'parquet', path = '{tmp_path}')")
    mill.add_query("q", "SELECT k FROM s")
    (tmp_path / "1.parquet").write_bytes(b"no parquet")
    with pytest.raises(MillstreamError):
        mill.drain()
    pl.DataFrame({"k": [1, 2]}).write_parquet(tmp_path / "1.parquet")
    mill.drain()
    assert sorted(mill.take_rows("q").rows()) == [(1,), (2,)]
