"""What `millstream run` shows: the rows of queries without a sink, and why there are none."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest
from rich.console import Console

from millstream.control.runner import run_file
from millstream.errors import InputError

STREAM = "CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = '{}', path = '{}', once = true);"


def run(text: str, **options: object) -> str:
    said = io.StringIO()
    run_file(text, Console(file=said, width=300), local=True, **{"checkpoint": None, **options})  # type: ignore[arg-type]
    return said.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("k,ts\n7,1\n8,2\n", encoding="utf-8")
    return tmp_path


def test_a_named_query_without_a_sink_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = STREAM.format("csv", folder / "in") + "CREATE QUERY named AS SELECT k FROM s -- all of it\n;"
    run(text, checkpoint=folder / "kept")
    shown = capsys.readouterr().out
    assert "7" in shown and "8" in shown and "BIGINT" in shown
    assert "resumed from" in run(text, checkpoint=folder / "kept")  # the same statements


def test_a_named_query_into_none_is_not_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(STREAM.format("csv", folder / "in") + "CREATE QUERY named AS SELECT k FROM s INTO none")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("path", "said"),
    [("in/*.cvs", "no file in '{0}/in' matches '*.cvs'"), ("empty", "there is no file in '{0}/empty'")],
)
def test_a_stream_without_files_is_named(folder: Path, path: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "empty").mkdir()
    with caplog.at_level(logging.WARNING, "millstream"):
        summary = run(STREAM.format("csv", folder / path) + "SELECT k FROM s")
    why = said.format(folder)
    assert f"M5067: stream 's' ends at once: {why}" in caplog.text
    assert f"no rows of query 'query_1': {why}" in summary


def test_a_file_of_another_kind_is_not_parquet(folder: Path) -> None:
    with pytest.raises(InputError, match=r"M5046: file '.*a\.csv' is not a parquet file") as caught:
        run(STREAM.format("parquet", folder / "in") + "SELECT k FROM s")
    assert caught.value.hint == "connector = 'csv' reads text"
    (folder / "in" / "a.csv").write_text('{"k": 7, "ts": 1}\n', encoding="utf-8")
    with pytest.raises(InputError, match="M5046") as caught:
        run(STREAM.format("parquet", folder / "in") + "SELECT k FROM s")
    assert caught.value.hint == "connector = 'json' reads text"


WINDOWS = {
    "SELECT k FROM s [RANGE 5]": "leave it out",
    "SELECT k FROM s [ROWS 5]": "leave it out",
    "SELECT k FROM (SELECT k FROM s) [RANGE 5]": "leave it out",
    "SELECT DISTINCT k FROM s [RANGE 5]": "GROUP BY the columns",
    "SELECT SUM(k) OVER (ROWS 2 PRECEDING) FROM s [RANGE 5]": "write it into OVER",
    "SELECT k FROM s [NOW]": "",
    "SELECT k FROM s": "",
    "SELECT COUNT(*) AS n FROM s [RANGE 5]": "",
    "SELECT a.k FROM s [RANGE 5] a, s [RANGE 5] b WHERE a.k = b.k": "",
}


@pytest.mark.parametrize("query", WINDOWS)
def test_a_window_that_changes_nothing_is_named(folder: Path, query: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "millstream"):
        run(f"{STREAM.format('csv', folder / 'in')}{query} INTO none")
    assert ("M3027" in caplog.text) == bool(WINDOWS[query])
    assert WINDOWS[query] in caplog.text


def test_a_stream_that_nothing_feeds_beside_another(folder: Path) -> None:
    text = (
        STREAM.format("csv", folder / "in")
        + "CREATE STREAM fed (k BIGINT); SELECT k FROM s UNION ALL SELECT k FROM fed"
    )
    assert "all streams but 'fed', which nothing feeds, have ended after" in run(f"{text} INTO none")


def test_the_summary_of_a_resumed_run_counts_since_then(folder: Path) -> None:
    text = STREAM.format("csv", folder / "in") + "CREATE QUERY one AS SELECT k FROM s WHERE k > 7 INTO none"
    assert " s: 2 rows in, 1 row out" in run(text, checkpoint=folder / "kept")
    assert " s, since the resume: 0 rows in, 0 rows out" in run(text, checkpoint=folder / "kept")


def test_rows_of_tables_are_aligned_as_those_of_streams() -> None:
    table = "CREATE TABLE t (name VARCHAR, n BIGINT); "
    rows = "INSERT INTO t VALUES ('a', 1), ('longer', 1000), (NULL, NULL); "
    assert run(f"{table}{rows}SELECT name, n FROM t").splitlines() == [
        "name    |      n",
        "VARCHAR | BIGINT",
        "--------+-------",
        "a       |      1",
        "longer  |   1000",
        "NULL    |   NULL",
    ]
    assert run(f"{table}SELECT name, n FROM t").splitlines() == [
        "name    |      n",
        "VARCHAR | BIGINT",
        "--------+-------",
    ]
