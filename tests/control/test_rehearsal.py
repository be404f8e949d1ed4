"""What can be known of a file of statements before Spark starts is reported before."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from millstream.algebra import values
from millstream.control.runner import run_file
from millstream.errors import MillstreamError

STREAM = """CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts
  WITH (connector = 'parquet', path = '{folder}/in', once = true);
CREATE TABLE names (k BIGINT, name VARCHAR) WITH (connector = 'csv', path = '{folder}/names.csv');
"""
QUERY = "CREATE QUERY q AS SELECT s.k FROM s JOIN names ON s.k = names.k INTO parquet WITH (path = '{folder}/out');"


class Started(Exception):
    """Spark would start now."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    pl.DataFrame({"k": range(10), "ts": range(10)}).write_parquet(tmp_path / "in" / "1.parquet")
    (tmp_path / "names.csv").write_text("k,name\n1,a\n")

    def start(*_: Any) -> None:
        raise Started

    monkeypatch.setattr("millstream.control.connecting.start_session", start)
    monkeypatch.setattr("millstream.control.connecting.current_session", lambda: None)
    return tmp_path


def run(folder: Path, text: str, **options: Any) -> None:
    console = Console(file=io.StringIO(), width=200)
    run_file(text.replace("{folder}", str(folder)), console, checkpoint=folder / "kept", seconds=60, **options)


def kept(folder: Path, text: str) -> None:
    """A checkpoint of these statements, as Spark would have left it."""
    run(folder, text, local=True, shards=2)
    for path in (folder / "kept").glob("job-*/job.json"):
        path.write_text(path.read_text().replace("a single process", "Spark"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("CREATE QUERY w AS SELECT nosuch FROM s INTO none", r"M2001: .*\(line 5, column 26\)"),
        ("SELECT k FROM nosuch", "M2002"),
        ("SELECT k FROM s INTO nowhere", "M6003"),
        ("SELECT k FROM s INTO parquet", "M6040"),
        ("SELECT k FROM s INTO parquet WITH (path = 'x', overwrit = true)", "M6001"),
        ("SELECT k FROM s INTO console WITH (rows = 0)", "M6002"),
        ("CREATE STREAM z (k BIGINT) WITH (connector = 'csvv', path = 'x')", "M5002"),
        ("CREATE STREAM z (k BIGINT) WITH (connector = 'csv', path = '{folder}/no'); SELECT k FROM z", "M5040"),
        ("CREATE STREAM z (k BIGINT); CREATE QUERY w WITH (start = 'beginning') AS SELECT k FROM z", "M2104"),
        ("DROP QUERY w", "M2092"),
        ("DROP STREAM s", "M2093"),
        ("SET page_rows = 0", "M6002"),
        ("CREATE TABLE names (k BIGINT)", "M2010"),
    ],
)
def test_a_mistake_is_reported_before_spark_starts(folder: Path, more: str, said: str) -> None:
    with pytest.raises(MillstreamError, match=said):
        run(folder, f"{STREAM}{QUERY}\n{more}")


@pytest.mark.parametrize(
    "more",
    [
        "",
        "SET strategy = 'dfs; q.join: bfs'",
        "DROP QUERY q; CREATE QUERY q AS SELECT k FROM s INTO none",
        "CREATE TABLE IF NOT EXISTS names (k BIGINT, name VARCHAR); SHOW QUERIES; EXPLAIN q",
        "CREATE STREAM IF NOT EXISTS d AS SELECT k FROM s; SELECT k FROM d INTO none; DROP STREAM IF EXISTS x",
    ],
)
def test_nothing_wrong_is_claimed(folder: Path, more: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Started):
        run(folder, f"{STREAM}{QUERY}\n{more}")
    assert not caplog.records and not (folder / "out").exists()


def test_the_checkpoint_is_compared_before_spark_starts(folder: Path) -> None:
    kept(folder, STREAM + QUERY)
    other = QUERY.replace("= names.k", "= names.k + 1")
    with pytest.raises(MillstreamError, match=r"M6071: checkpoint '.*/kept' was made with other statements"):
        run(folder, STREAM + other)
    with pytest.raises(MillstreamError, match="M6071"):
        run(folder, STREAM)
    with pytest.raises(MillstreamError, match="M2001"):
        run(folder, f"{STREAM}{QUERY} SELECT nosuch FROM s")
    with pytest.raises(MillstreamError, match="M6041"):
        run(folder, STREAM + other, differing="replace")
    elsewhere = other.replace("/out'", "/elsewhere'")
    for text, options in ((QUERY, {}), (other, {"differing": "keep"}), (elsewhere, {"differing": "replace"})):
        with pytest.raises(Started):
            run(folder, STREAM + text, **options)


def test_shards_and_hosts_are_checked_before_spark_starts(folder: Path) -> None:
    kept(folder, STREAM + QUERY)
    with pytest.raises(MillstreamError, match=r"M6072: .* has 2 shards, which cannot become 3"):
        run(folder, STREAM + QUERY, shards=3)
    with pytest.raises(Started):
        run(folder, STREAM + QUERY, shards=2)
    (path,) = (folder / "kept").glob("job-*/job.json")
    path.write_text(path.read_text().replace("Spark", "a single process"))
    with pytest.raises(MillstreamError, match="M6058"):
        run(folder, STREAM + QUERY)
    path.write_text(path.read_text().replace(f'"format": {values.FORMAT}', f'"format": {values.FORMAT + 1}'))
    with pytest.raises(MillstreamError, match="M5020"):
        run(folder, STREAM + QUERY)
