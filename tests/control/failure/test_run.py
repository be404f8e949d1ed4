"""`millstream run` with a query that fails: the others go on, and the exit status is 1. With a sink that fails: what
waits is told, and the exit status is 3, or 1 if the sink stops its query."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import millstream as ms
from millstream.control.runner import run_file
from millstream.errors import MillstreamError, OperatorError

STATEMENTS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts
WITH (connector = 'csv', path = '{folder}/in', once = true, max_files_per_trigger = 1);
CREATE QUERY fine AS SELECT k FROM s INTO parquet WITH (path = '{folder}/fine');
CREATE QUERY bad AS SELECT k, v * 2000000 AS p FROM s INTO parquet WITH (path = '{folder}/bad');
"""


def write(folder: Path, bad: int = -1) -> None:
    """Three files with ten rows each; a value does not fit a product."""
    (folder / "in").mkdir(exist_ok=True)
    for first in (0, 10, 20):
        rows = range(first, first + 10)
        lines = [f"{n},{9_000_000_000_000 if n == bad else n + 1_000_000_000_000},{n}" for n in rows]
        (folder / "in" / f"{first:02}.csv").write_text("\n".join(["k,v,ts", *lines]) + "\n")


def run(folder: Path) -> tuple[str, OperatorError | None]:
    said = io.StringIO()
    text = STATEMENTS.format(folder=folder)
    error: OperatorError | None = None
    try:
        run_file(text, Console(file=said, width=300), local=True, checkpoint=folder / "kept", seconds=30)
    except OperatorError as raised:
        error = raised
    return said.getvalue(), error


def test_others_go_on_and_the_query_starts_again(tmp_path: Path) -> None:
    write(tmp_path, bad=25)
    said, error = run(tmp_path)
    assert error is not None and error.status == 1 and error.row == "(k = 25, v = 9000000000000, ts = 25)"
    assert "all streams have ended after" in said and "no rows of query" not in said
    assert "query bad failed in batch 2: M6053: operator Project-" in said
    assert sorted(pl.read_parquet(tmp_path / "fine" / "*.parquet")["k"]) == [*range(30)]
    assert sorted(pl.read_parquet(tmp_path / "bad" / "*.parquet")["k"]) == [*range(20)]
    write(tmp_path)  # a value of the same length that fits
    said, error = run(tmp_path)
    assert error is None
    assert "query 'bad' goes on where batch 2 began, and missed no rows" in said
    assert sorted(pl.read_parquet(tmp_path / "fine" / "*.parquet")["k"]) == [*range(30)]
    assert sorted(pl.read_parquet(tmp_path / "bad" / "*.parquet")["k"]) == [*range(30)]


def test_the_last_query_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, bad=25)
    monkeypatch.setattr(
        "tests.control.failure.test_run.STATEMENTS",
        STATEMENTS.replace("SELECT k FROM s", "SELECT k, v * 2000000 AS p FROM s"),
    )
    said, error = run(tmp_path)
    assert error is not None and error.status == 1 and "all streams" not in said
    write(tmp_path)
    assert run(tmp_path)[1] is None
    assert sorted(pl.read_parquet(tmp_path / "bad" / "*.parquet")["k"]) == [*range(30)]


def test_the_summary_gives_no_other_cause_for_a_failed_query(tmp_path: Path) -> None:
    write(tmp_path, bad=0)
    said, error = run(tmp_path)
    assert error is not None and "query bad failed in batch 0" in said
    assert "no rows of query" not in said


FINE = "".join(STATEMENTS.partition("CREATE QUERY bad")[:1])


@pytest.mark.parametrize("kept", [True, False])
def test_results_that_wait_at_the_end(tmp_path: Path, kept: bool) -> None:
    write(tmp_path)
    (tmp_path / "fine").mkdir()
    options = {"local": True, "checkpoint": tmp_path / "kept" if kept else None}
    text = FINE.format(folder=tmp_path)

    def broken() -> None:
        """A file takes the place of the folder once the query writes to it."""
        if (tmp_path / "fine" / "_millstream.parts").exists():
            (tmp_path / "fine").rename(tmp_path / "away")
            (tmp_path / "fine").touch()

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MillstreamError) as caught:
        patch.setattr("millstream.control.runner.ProgressLine.show", lambda _: broken())
        run_file(text, Console(quiet=True), seconds=0.5, **options)  # type: ignore[arg-type]
    assert caught.value.code == "M6075" and caught.value.status == 3
    what = "kept in the checkpoint" if kept else "discarded"
    assert f"20 rows of query 'fine' waiting for its sink: {what}. sink failing since" in caught.value.detail
    assert "File exists" in caught.value.detail or "Not a directory" in caught.value.detail
    if kept:
        (tmp_path / "fine").unlink()
        (tmp_path / "away").rename(tmp_path / "fine")
        run_file(text, Console(quiet=True), **options)  # type: ignore[arg-type]
        assert sorted(pl.read_parquet(tmp_path / "fine" / "*.parquet")["k"]) == [*range(30)]


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("when", ["running", "resumed"])
def test_a_folder_without_its_marker_stops_its_query(tmp_path: Path, others: bool, when: str) -> None:
    write(tmp_path)
    marker, held = tmp_path / "fine" / "_millstream.json", ""
    text = FINE.format(folder=tmp_path) + ("CREATE QUERY more AS SELECT v FROM s INTO none;" if others else "")

    def lose(_: object) -> None:
        nonlocal held
        if marker.exists() and (marker.parent / "_millstream.parts").exists():
            held = marker.read_text()
            marker.unlink()
            if when == "resumed":
                raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("millstream.control.runner.ProgressLine.show", lose)
        if when == "resumed":
            with pytest.raises(KeyboardInterrupt):
                run_file(text, Console(quiet=True), local=True, checkpoint=tmp_path / "kept", seconds=20)
        with pytest.raises(MillstreamError) as caught:
            run_file(text, Console(quiet=True), local=True, checkpoint=tmp_path / "kept", seconds=20)
    assert caught.value.code == "M6041" and caught.value.status == 1 and "restore it" in caught.value.hint
    assert json.loads(held)["query"] == "fine"
    marker.write_text(held)
    run_file(text, Console(quiet=True), local=True, checkpoint=tmp_path / "kept", seconds=20)
    assert sorted(pl.read_parquet(tmp_path / "fine" / "*.parquet")["k"]) == [*range(30)]


def test_an_insert_that_raises_the_error_of_a_sink_has_kept_its_rows(tmp_path: Path) -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        query = mill.sql("SELECT k FROM s").start("parquet", path=str(tmp_path))  # type: ignore[attr-defined]
        mill.insert("s", [(0,)])
        marker = tmp_path / "_millstream.json"
        held = marker.read_text()
        marker.unlink()
        with pytest.raises(MillstreamError, match="M6041"):
            mill.insert("s", [(1,)])
        marker.write_text(held)
        query.start()
        mill.insert("s", [(2,)])
    assert sorted(pl.read_parquet(tmp_path / "*.parquet")["k"]) == [0, 1, 2]
