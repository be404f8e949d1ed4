"""Queries that end by LIMIT."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import millstream as ms
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.runner import run_file
from millstream.errors import MillstreamError
from millstream.lang import ast, parse

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT)"


def test_a_query_reports_its_end(tmp_path: Path) -> None:
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql(STREAM)
        query = mill.sql("CREATE QUERY q AS SELECT k FROM s LIMIT 2")
        mill.insert("s", [(1, 1)])
        assert query.take().rows() == [(1,)] and query.running and not query.finished
        mill.insert("s", [(2, 1), (3, 1)])
        assert query.await_end(5)
        assert query.finished and not query.running
        assert query.take().rows() == [(2,)] and query.progress().finished
        assert "ended  all rows" in str(query.progress()) and "ended" in mill.sql("SHOW QUERIES")
        with pytest.raises(MillstreamError, match="M2107"):
            query.feedback("~[k = 1]")
        mill.insert("s", [(5, 1)])
        assert query.error is None and query.finished  # its job knows it no more
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        assert "ended" in mill.sql("SHOW QUERIES")
        mill.insert("s", [(4, 1)])
        assert mill.ended() and not mill.mill.placements.of


def test_a_run_ends_with_its_queries() -> None:
    """The streams would go on for ever."""
    text = """
        CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
          WITH (connector = 'nexmark', stream = 'bid', rate = 1000, speed = 1);
        SELECT auction, price FROM bids LIMIT 3;
    """
    out = StringIO()
    run_file(text, Console(file=out, width=200), local=True, checkpoint=None, seconds=60)
    assert "all queries have ended" in out.getvalue() and "3 rows out" in out.getvalue()


def test_everything_is_disclaimed() -> None:
    """The join before it drops what it holds in the same batch, though a part of the graph is read by another query."""
    mill = LocalMill(Options())
    mill.execute(f"{STREAM}; CREATE STREAM r (k BIGINT, w BIGINT)")
    mill.add_query("q", "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k LIMIT 1")
    mill.add_query("all_rows", "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k WHERE v > 0")
    mill.insert("s", [(1, 1), (2, 1), (2, 2)])
    mill.insert("r", [(2, 5)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(2, 1, 5)]
    assert mill.query("q").finished is not None and mill.state_rows("q") == 0
    mill.insert("r", [(1, 6)])
    mill.batch()
    assert sorted(mill.take_rows("all_rows").rows()) == [(1, 1, 6), (2, 1, 5), (2, 2, 5)]


def test_a_table_is_written_by_the_first_rows() -> None:
    mill = LocalMill(Options())
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts; CREATE TABLE t (k BIGINT)")
    mill.execute("CREATE QUERY w AS INSERT INTO t SELECT k FROM s LIMIT 2")
    for k in (1, 2, 3):
        mill.insert("s", [(k, k)])
        mill.batch()
    assert mill.query("w").finished is not None
    (statement,) = parse("SELECT k FROM t ORDER BY k")
    assert isinstance(statement, ast.SelectStatement)
    assert mill.written.once(statement.select)[1].rows() == [(1,), (2,)]
