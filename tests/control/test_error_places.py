"""Errors about options and types have their position, and hints name what works: each that is a query is accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import millstream as ms
from millstream.errors import LISTED, MillstreamError, did_you_mean
from millstream.lang.foreign.queries import QUERIES


@pytest.fixture
def mill() -> Iterator[ms.Connection]:
    with ms.connect(local=True) as connection:
        connection.sql("CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts")
        yield connection


def refused(mill: ms.Connection, text: str) -> MillstreamError:
    with pytest.raises(MillstreamError) as caught:
        mill.sql(text)
    return caught.value


def _marked(text: str) -> tuple[str, int, int]:
    """A text without its mark ^, and the position of the mark."""
    before = text[: text.index("^")]
    return text.replace("^", ""), before.count("\n") + 1, len(before) - before.rfind("\n")


PLACES = [
    ("M6001", "CREATE STREAM a (k INT) WITH (connector = 'csv', ^pth = 'x')"),
    ("M6001", "SELECT k FROM s;\n  CREATE STREAM a (k INT)\n  WITH (connector = 'csv', path = 'x',\n   ^once2 = true)"),
    ("M6002", "CREATE STREAM a (k INT) WITH (connector = 'csv', path = 'x', header = ^'maybe')"),
    ("M6002", "CREATE STREAM a (k INT) WITH (connector = 'csv', path = 'x', max_files_per_trigger = ^-3)"),
    ("M5002", "CREATE STREAM a (k INT) WITH (connector = ^'cvs', path = 'x')"),
    ("M6001", "CREATE TABLE a (k INT) WITH (connector = 'csv', path = 'x', ^once = true)"),
    ("M6002", "CREATE TABLE a (k INT PRIMARY KEY) WITH (partitioned = ^maybe)"),
    ("M6001", "CREATE QUERY q AS SELECT k AS path FROM s WHERE k = 1\nINTO parquet WITH (^pth = 'x')"),
    ("M6003", "SELECT k FROM s WHERE k = 1 INTO ^parqet WITH (path = 'x')"),
    ("M6040", "SELECT k FROM s INTO ^parquet"),
    ("M6001", "SET ^stratgy = 'dfs'"),
    ("M6002", "SET page_rows = ^'many'"),
    ("M2003", "SELECT k,\n CAST(k AS ^FOO) FROM s"),
    ("M2003", "SELECT CAST(CAST(k AS BIGINT) AS ^BIGNT) AS x FROM s"),
    ("M2003", "SELECT k :: ^FOO FROM s"),
    ("M2003", "SELECT k FROM s WHERE CAST(k AS ^FOO) = 1"),
    ("M2003", "SELECT SUM(CAST(k AS ^FOO)) FROM s [RANGE 10]"),
    ("M2003", "CREATE STREAM a (k ^FOO)"),
    ("M5001", "CREATE STREAM a (k INT) WITH (connector = ^'csv')"),
    ("M5001", "SELECT k FROM s;\nCREATE TABLE a (k INT)\n WITH (connector = ^'csv')"),
    ("M5040", "CREATE TABLE a (k INT) WITH (connector = 'csv', path = ^'/none/such')"),
    ("M2001", "CREATE STREAM bid (price BIGINT,\n ^kk INT) WITH (connector = 'nexmark')"),
    ("M2006", "CREATE STREAM bid (^price DATE) WITH (connector = 'nexmark')"),
    ("M2002", "CREATE STREAM ^other (price INT) WITH (connector = 'nexmark')"),
    ("M2002", "CREATE STREAM bid (price INT) WITH (connector = 'nexmark', stream = ^'other')"),
    ("M2009", "SELECT QUANTILE(v, ^95) FROM s [RANGE 10]"),
]


@pytest.mark.parametrize(("code", "text"), PLACES, ids=[text for _, text in PLACES])
def test_places(mill: ms.Connection, code: str, text: str) -> None:
    text, line, column = _marked(text)
    error = refused(mill, text)
    assert (error.code, error.line, error.column) == (code, line, column), str(error)


def test_a_share_that_is_a_percentage(mill: ms.Connection) -> None:
    for call in ("QUANTILE(v, 95)", "PERCENTILE(v, 95)", "APPROX_QUANTILE(v, 95)", "QUANTILE_DISC(v, 95)"):
        assert "95.0 per cent are 0.95" in refused(mill, f"SELECT {call} FROM s [RANGE 10]").hint.replace(
            "95 p", "95.0 p"
        )
    assert refused(mill, "SELECT QUANTILE(v, -1) FROM s [RANGE 10]").hint == ""


def test_hints_list_few_names(mill: ms.Connection) -> None:
    assert "known" not in refused(mill, "SELECT zzzzqq(k) FROM s").hint
    assert "millstream docs" in refused(mill, "SELECT k (v) FROM s").hint
    assert len(refused(mill, "SELECT CAST(k AS FOO) FROM s").hint.split(",")) == 10
    assert len(did_you_mean("zz", (f"name{number}" for number in range(100))).split(",")) <= LISTED


def test_queries_in_hints_are_accepted(mill: ms.Connection) -> None:
    """No hint leads to the next refusal."""
    hint = refused(mill, "SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM s").hint
    (largest,) = re.findall(r"SELECT [^;]*", hint)
    mill.sql(largest)
    mill.sql(largest.replace("MAX", "LAST"))
    mill.sql(f"SELECT * {QUERIES['QUALIFY'][1]}")
    both = "(SELECT k, v, ts FROM s UNION ALL SELECT k, v, ts FROM s__late) AS u"
    error = refused(mill, f"SELECT SUM(v) OVER (ROWS 5 PRECEDING) AS n FROM {both}")
    assert error.code == "M3024" and "[RANGE 10 ON ts]" in error.hint
    mill.sql(f"SELECT window_end, SUM(v) AS n FROM {both} [RANGE 10 ON ts]")
    assert "in a subquery" in refused(mill, "SELECT k, ROW_NUMBER() OVER () AS n FROM s HAVING n = 1").hint


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_a_header_that_is_not_utf_8(mill: ms.Connection, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("k,stra\xdfe,v\n1,2,3\n".encode("latin-1"))
    once = ", once = true" if kind == "STREAM" else ""
    options = f"WITH (connector = 'csv', path = '{path}'{once})"
    with pytest.raises(MillstreamError, match=r"M5046: the first line .*x.csv' is not UTF-8.*\n.*iconv -f ISO-8859-1"):
        mill.sql(f'CREATE {kind} a (k INT, "stra\xdfe" INT) {options}')
        mill.sql("SELECT * FROM a").start()
    mill.sql(f"CREATE {kind} b (k INT, v INT) {options}")
    if kind == "TABLE":
        assert mill.sql("SELECT k, v FROM b").rows() == [(1, 3)]  # type: ignore[attr-defined]
