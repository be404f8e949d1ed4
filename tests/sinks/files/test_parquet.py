"""One file per batch: complete or absent, exactly once, in a folder of its own."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from millstream.algebra.schema import TS, Schema
from millstream.errors import OptionError
from millstream.sinks import Sink, make_sink
from millstream.sinks.files.folder import part_name
from tests.paths import ROOT
from tests.sinks.sample import BEFORE_NOON, COUNTS, HOT, hot


def opened(folder: Path, run: str = "r1", query: str = "hot", schema: Schema = HOT, **options: str) -> Sink:
    sink = make_sink("parquet", {"path": str(folder), "run": run, **options})
    sink.open(query, schema)
    return sink


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def auctions(folder: Path) -> list[int]:
    return pl.read_parquet(folder / "*.parquet")["auction"].to_list()


def test_files_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "results"
    sink = opened(folder)
    sink.write(0, hot(1, 2), [BEFORE_NOON])
    sink.write(1, hot(), [BEFORE_NOON])
    sink.write(12, hot(3).with_columns(pl.lit(0).alias(TS)), [])
    sink.close()
    parts = ["part-0000000000.parquet", "part-0000000012.parquet"]
    assert names(folder) == ["_millstream.json", "_millstream.parts", *parts]
    assert pl.read_parquet(folder / "*.parquet").equals(hot(1, 2, 3))
    assert duckdb.sql(f"SELECT sum(auction) FROM '{folder}/*.parquet'").fetchall() == [(6,)]
    column = pq.ParquetFile(folder / "part-0000000000.parquet").metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_a_repeated_batch_replaces_its_file(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for rows in (hot(1, 2), hot(2, 1)):
        sink.write(3, rows, [])
    assert auctions(tmp_path) == [2, 1]


def test_the_same_run_continues(tmp_path: Path) -> None:
    opened(tmp_path).write(0, hot(1), [])
    for overwrite in ("false", "true"):
        sink = opened(tmp_path, overwrite=overwrite)
        sink.write(0, hot(1), [])
        sink.write(1, hot(2), [])
    assert auctions(tmp_path) == [1, 2]


KILLED = """
import os, sys
from pathlib import Path
from tests.sinks.sample import hot
from tests.sinks.files.test_parquet import opened
sink = opened(Path(sys.argv[1]))
sink.write(0, hot(1), [])
Path.replace = lambda *_: os._exit(9)
sink.write(1, hot(2, 3), [])
"""


def test_killed_before_the_file_has_its_name(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, check=False)
    assert killed.returncode == 9
    assert ".millstream-part-0000000001.parquet.tmp" in names(tmp_path) and auctions(tmp_path) == [1]
    (tmp_path / ".mine").touch()
    sink = opened(tmp_path)
    assert names(tmp_path) == [".mine", "_millstream.json", "_millstream.parts", "part-0000000000.parquet"]
    sink.write(1, hot(2, 3), [])
    assert auctions(tmp_path) == [1, 2, 3]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    sink = opened(tmp_path)
    sink.write(0, hot(1), [])
    before = names(tmp_path)
    with monkeypatch.context() as patched, pytest.raises(OptionError, match=r"M6042.*No space left on device"):
        patched.setattr("os.fsync", full)
        sink.write(0, hot(1, 1), [])
    assert names(tmp_path) == before and auctions(tmp_path) == [1]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"run": "r2"}, "results of another run of query 'hot'"),
        ({"run": ""}, "results of another run of query 'hot'"),
        ({"run": "r2", "query": "cheap"}, "the results of query 'hot'"),
        ({"run": "r2", "schema": COUNTS}, r"with other columns\n  It has \(auction BIGINT, .*the query \(n BIGINT\)"),
        ({"schema": COUNTS}, "with other columns"),
    ],
)
def test_results_of_others_are_refused_or_replaced(tmp_path: Path, other: dict[str, str], says: str) -> None:
    opened(tmp_path).write(0, hot(1), [])
    (tmp_path / ".millstream-part-0000000001.parquet.tmp").touch()
    (tmp_path / "notes.txt").touch()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(OptionError, match=f"M6041.*{says}") as caught:
        opened(tmp_path, **other)
    assert "overwrite = true" in caught.value.hint
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    sink = opened(tmp_path, **other, overwrite="true")
    assert names(tmp_path) == ["_millstream.json", "notes.txt"]
    if "schema" not in other:
        sink.write(0, hot(7), [])
        assert auctions(tmp_path) == [7]


def test_two_queries_of_a_run_need_two_folders(tmp_path: Path) -> None:
    opened(tmp_path).write(0, hot(1), [])
    with pytest.raises(OptionError, match=r"M6041.*query 'hot' of the same run"):
        opened(tmp_path, query="cheap", overwrite="true")
    assert auctions(tmp_path) == [1]


@pytest.mark.parametrize("overwrite", ["false", "true"])
@pytest.mark.parametrize(
    ("name", "says", "advice"),
    [
        ("part-0.parquet", "holds files that no query wrote", "choose another path"),
        ("part-0000000000.parquet", "holds results, but _millstream.json is gone", "restore it"),
        ("_millstream.parts", "holds results, but _millstream.json is gone", "restore it"),
    ],
)
def test_files_without_an_owner_are_never_touched(
    tmp_path: Path, overwrite: str, name: str, says: str, advice: str
) -> None:
    hot(1).write_parquet(tmp_path / name)
    with pytest.raises(OptionError, match=f"M6041.*{says}") as caught:
        opened(tmp_path, overwrite=overwrite)
    assert names(tmp_path) == [name] and caught.value.hint.startswith(advice)


@pytest.mark.parametrize("text", ["", "[]", '{"query": 1}', '{"query": "hot", "run": "r1", "columns": [1]}', "\xff"])
def test_a_damaged_marker(tmp_path: Path, text: str) -> None:
    (tmp_path / "_millstream.json").write_text(text, encoding="latin-1")
    with pytest.raises(OptionError, match=r"M6041.*_millstream.json in it is damaged"):
        opened(tmp_path, overwrite="true")


def test_the_marker_can_be_read(tmp_path: Path) -> None:
    opened(tmp_path, schema=COUNTS)
    held = json.loads((tmp_path / "_millstream.json").read_text())
    assert held == {"query": "hot", "run": "r1", "columns": [["n", "BIGINT"]]}


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match=r"M6042: cannot write '.*file'"):
        opened(tmp_path / "file")


@pytest.mark.parametrize("what", ["folder", "content"])
def test_a_folder_that_was_removed_is_made_again(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "results"
    sink = opened(folder)
    caplog.clear()
    sink.write(0, hot(1), [])
    shutil.rmtree(folder)
    if what == "content":
        folder.mkdir()
    sink.write(1, hot(2), [])
    assert auctions(folder) == [2] and "_millstream.json" in names(folder)
    (said,) = caplog.messages
    assert (
        said == f"the folder '{folder}' of query 'hot' was removed: it is made again, without the results that it had"
    )
    opened(folder).write(2, hot(3), [])
    shutil.rmtree(folder)
    opened(folder, anew="false").write(3, hot(4), [])
    assert auctions(folder) == [4] and len(caplog.messages) == 2


def test_a_folder_of_others_is_left_alone_while_a_query_runs(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    sink = opened(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "mine.txt").write_text("x")
    with pytest.raises(OptionError, match="M6041"):
        sink.write(1, hot(2), [])
    assert names(folder) == ["mine.txt"]


@pytest.mark.parametrize(("damage", "says"), [("gone", "is gone"), ("broken", "damaged"), ("taken", "another run")])
def test_a_folder_is_looked_at_before_each_write(tmp_path: Path, damage: str, says: str) -> None:
    sink, marker = opened(tmp_path), tmp_path / "_millstream.json"
    sink.write(0, hot(1), [])
    held = marker.read_text()
    if damage == "gone":
        marker.unlink()
    else:
        marker.write_text(held[:20] if damage == "broken" else held.replace("r1", "r2"))
    with pytest.raises(OptionError, match=f"M6041.*{says}") as caught:
        sink.write(1, hot(2), [])
    assert caught.value.lasting
    marker.write_text(held)
    sink.write(1, hot(2), [])
    assert auctions(tmp_path) == [1, 2]


def test_files_that_are_gone_are_told_once_on_resume(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sink = opened(tmp_path)
    caplog.clear()
    for batch in (0, 2, 2, 3, 4, 5):
        sink.write(batch, hot(batch), [])
    with (tmp_path / "_millstream.parts").open("a") as parts:
        parts.write("1")  # cut by a crash
    opened(tmp_path).write(5, hot(5), [])
    opened(tmp_path)
    assert not caplog.messages
    (tmp_path / "_millstream.parts").unlink()
    for _ in range(2):
        opened(tmp_path)
    (said,) = caplog.messages
    assert said.startswith(f"M6076: the list of the result files of query 'hot' is gone from '{tmp_path}'")
    caplog.clear()
    for batch in (0, 2, 3, 4):
        (tmp_path / f"part-{batch:010d}.parquet").unlink()
    opened(tmp_path)
    opened(tmp_path)
    (said,) = caplog.messages
    assert said.startswith(f"M6076: 4 result files of query 'hot' are gone from '{tmp_path}'")
    assert "part-0000000000.parquet, part-0000000002.parquet, part-0000000003.parquet, …" in said
    opened(tmp_path, run="r2", overwrite="true").write(5, hot(1), [])
    assert (tmp_path / "_millstream.parts").read_text() == "5\n"


def test_the_systems_reason_is_told_wherever_the_space_ends(tmp_path: Path) -> None:
    sink, rows = opened(tmp_path), hot(*range(1000))
    sink.write(0, rows, [])
    whole, (soft, hard) = (tmp_path / part_name(0)).stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (0, 3, 4, *range(5, whole, 97), *range(whole - 40, whole)):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        try:
            with pytest.raises(OptionError, match=r"M6042: cannot write '.*': File too large$"):
                sink.write(1, rows, [])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("begun", "of"), [("1", "2 files of query 'hot' of batches 3 to 4"), ("3", "1 file of .* batch 4")]
)
def test_results_after_the_checkpoint_are_refused(
    tmp_path: Path, begun: str, of: str, caplog: pytest.LogCaptureFixture
) -> None:
    sink = opened(tmp_path)
    for batch in (0, 1, 3, 4):
        sink.write(batch, hot(batch), [])
    opened(tmp_path, begun="4")  # the last batch may run again
    before = names(tmp_path)
    for overwrite in ("false", "true"):
        with pytest.raises(OptionError, match=rf"M6078: '.*' is ahead of the checkpoint: it has {of}") as caught:
            opened(tmp_path, begun=begun, overwrite=overwrite)
    assert caught.value.lasting and names(tmp_path) == before
    for batch in (3, 4):
        (tmp_path / part_name(batch)).unlink()
    caplog.clear()
    opened(tmp_path, begun=begun)
    (said,) = caplog.messages
    assert "M6076" in said and f"results after batch {begun} are written again" in said


def test_a_new_query_does_not_take_over_results(tmp_path: Path) -> None:
    opened(tmp_path, anew="true")
    opened(tmp_path, anew="true").write(0, hot(1), [])  # the first start was interrupted
    with pytest.raises(OptionError, match=r"M6041: .* of query 'hot' from before it was dropped"):
        opened(tmp_path, anew="true")
    opened(tmp_path, anew="true", overwrite="true").write(2, hot(2), [])
    assert auctions(tmp_path) == [2]
