"""Python functions, Python aggregates, library aggregates and all built-in aggregates in statements over tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import millstream as ms
from millstream.control.connection import Connection
from millstream.errors import CodeError, MillstreamError


def inverse(x: int) -> float:
    return 1 / x


def doubled(x: pl.Series) -> pl.Series:
    return x * 2


class Spread:
    def __init__(self) -> None:
        self.values: list[int] = []

    def iterate(self, x: int) -> None:
        self.values.append(x)

    def terminate(self) -> int:
        return max(self.values) - min(self.values)


class Rises:
    """It has no end: a row for each value that exceeds the last."""

    def initialize(self, x: int) -> None:
        self.last = x

    def iterate(self, x: int) -> int | None:
        was, self.last = self.last, x
        return x if x > was else None


def register(mill: Connection) -> None:
    mill.function(inverse)
    mill.function(doubled, arguments=["BIGINT"], returns="BIGINT")
    mill.aggregate(Spread)
    mill.aggregate(Rises)


@pytest.fixture
def mill() -> Iterator[Connection]:
    with ms.connect(local=True, contracts="off") as made:
        register(made)
        made.sql("CREATE TABLE t (k VARCHAR PRIMARY KEY, v BIGINT, w DOUBLE)")
        made.sql("INSERT INTO t VALUES ('a', 4, 0.5), ('b', 0, 1.5), ('c', 10, NULL)")
        yield made


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT k, inverse(v) FROM t WHERE inverse(v) > 0.1 AND v <> 0 ORDER BY k", [("a", 0.25)]),
        ("SELECT k FROM t WHERE (inverse(v) > 0.2 AND v > 0) OR k = 'b' ORDER BY k", [("a",), ("b",)]),
        ("SELECT COALESCE(w, inverse(v)) FROM t ORDER BY k", [(0.5,), (1.5,), (0.1,)]),
        ("SELECT CASE WHEN v > 0 THEN inverse(v) END FROM t ORDER BY k", [(0.25,), (None,), (0.1,)]),
        ("SELECT doubled(v) FROM t ORDER BY doubled(v) DESC LIMIT 2", [(20,), (8,)]),
        ("SELECT doubled(v) > 5, COUNT(*) FROM t GROUP BY doubled(v) > 5 ORDER BY 2", [(False, 1), (True, 2)]),
        ("SELECT spread(v), spread(doubled(v)), spread(DISTINCT v) FROM t", [(10, 20, 10)]),
        ("SELECT v > 3, spread(v) FROM t GROUP BY v > 3 HAVING spread(v) > 1", [(True, 6)]),
        ("SELECT rises(v) FROM t", [(10,)]),
        ("SELECT spread(v) FROM t WHERE v > 99", []),
        ("SELECT cumulative_avg(v) FROM t", [(4.0,), (2.0,), (14 / 3,)]),
        ("SELECT t.k, n FROM t JOIN (SELECT MAX(doubled(v)) AS n FROM t) m ON t.v * 2 = m.n", [("c", 20)]),
        ("SELECT MEDIAN(v), STDDEV(v), VAR_POP(w), BOOL_OR(v > 9) FROM t", [(4.0, 5.033222956847167, 0.25, True)]),
        ("SELECT ARRAY_AGG(w), STRING_AGG(k, '-'), COUNT(DISTINCT v) FROM t", [([0.5, 1.5, None], "a-b-c", 3)]),
        ("SELECT FIRST(w) FILTER (WHERE v > 4), LAST(k) FILTER (WHERE v < 9) FROM t", [(None, "b")]),
        ("SELECT QUANTILE_DISC(v, 0.5), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v) FROM t", [(4, 4.0)]),
        ("SELECT MEDIAN(v), ARRAY_AGG(v), FIRST(v) FROM t WHERE v > 99", [(None, None, None)]),
    ],
)
def test_select_over_tables(mill: Connection, query: str, rows: list[Any]) -> None:
    assert mill.sql(query).rows() == rows


@pytest.mark.parametrize(
    ("statement", "code", "column", "message"),
    [
        ("SELECT inverse(k) FROM t", "M2006", 8, "argument 'x' of inverse is a BIGINT, not VARCHAR"),
        ("SELECT inverse(v, 1) FROM t", "M2009", 8, "takes 1 argument, found 2"),
        ("SELECT v FROM t WHERE spread(v) > 1", "M3013", 23, "SPREAD is an aggregate, not allowed in WHERE"),
        ("SELECT spread(v) FILTER (WHERE v > 1) FROM t", "M2009", 8, "FILTER of spread"),
        ("SELECT window_max(v) FROM t", "M2008", 8, "has only a window version"),
        ("SELECT LAG(v) FROM t", "M3028", 8, "needs OVER"),
        ("UPDATE t SET w = inverse(v)", "M2095", 1, "a row does not fit"),
        ("INSERT INTO t VALUES ('d', 1, inverse(0))", "M2095", 1, "function inverse(0) raised ZeroDivisionError"),
    ],
)
def test_mistakes(mill: Connection, statement: str, code: str, column: int, message: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        mill.sql(statement)
    assert (caught.value.code, caught.value.column) == (code, column)
    assert message in caught.value.message


def test_an_exception_in_a_query_names_the_function_and_the_row(mill: Connection) -> None:
    with pytest.raises(CodeError) as caught:
        mill.sql("SELECT k,\n  inverse(v) FROM t")
    assert "function inverse(0) raised ZeroDivisionError" in caught.value.message
    assert caught.value.line == 1


def test_a_function_in_the_body_of_an_aggregate(mill: Connection) -> None:
    mill.sql("CREATE STREAM s (v BIGINT, ts BIGINT) ORDER BY ts")
    mill.sql(
        "CREATE WINDOW AGGREGATE wide(x BIGINT) : BIGINT { TABLE inwindow(w BIGINT);"
        " INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT spread(doubled(w)) + doubled(x) - doubled(x)"
        " FROM inwindow; } }"
    )
    query = mill.sql("SELECT wide(v) OVER (ROWS 1 PRECEDING) AS w FROM s").start()
    assert "compiled" in mill.sql("EXPLAIN SELECT wide(v) OVER (ROWS 1 PRECEDING) AS w FROM s")
    mill.insert("s", [(1, 1), (7, 2), (9, 3)])
    assert query.take().rows() == [(0,), (12,), (4,)]


WRITES = """
CREATE STREAM s (k VARCHAR, v BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM d (k VARCHAR, ts BIGINT) ORDER BY ts;
CREATE TABLE t (k VARCHAR PRIMARY KEY, v BIGINT, w DOUBLE);
CREATE QUERY puts AS INSERT INTO t SELECT k, doubled(v), 0.0 FROM s
  ON CONFLICT DO UPDATE SET v = t.v + doubled(excluded.v), w = inverse(excluded.v);
CREATE QUERY drops AS DELETE FROM t USING d WHERE t.k = d.k AND doubled(t.v) > 20;
"""


def test_statements_that_streams_drive_restarted(tmp_path: Path) -> None:
    def opened() -> Connection:
        made = ms.connect(local=True, contracts="off", checkpoint=tmp_path / "c", resume=False)
        register(made)
        return made

    mill = opened()
    mill.resume()
    mill.sql(WRITES)
    mill.insert("s", [("a", 4, 1), ("b", 5, 2), ("a", 5, 3)])
    mill.insert("d", [("x", 4)])
    assert mill.sql("SELECT * FROM t ORDER BY k").rows() == [("a", 28, 0.1), ("b", 10, 0.0)]
    mill.close()
    mill = opened()
    mill.resume()
    mill.insert("s", [("b", 0, 5), ("b", 8, 6), ("c", 1, 7)])
    mill.insert("d", [("a", 8), ("x", 9)])
    mill.insert("s", [("c", 3, 20)])
    # b's first tuple is refused: its function raises
    assert mill.sql("SELECT * FROM t ORDER BY k").rows() == [("b", 42, 0.0625), ("c", 2, 0.0)]
    shown = mill.sql("SHOW TABLES")
    assert "1 bad (the last: function inverse(0) raised ZeroDivisionError" in shown
    mill.sql("UPDATE t SET w = inverse(v)")
    assert mill.sql("SELECT w FROM t ORDER BY k").rows() == [(1 / 42,), (0.5,)]
    mill.close()


def test_a_select_that_raises_takes_its_insert_out_and_nothing_else(mill: Connection) -> None:
    mill.sql("""
        CREATE STREAM s (k VARCHAR, v BIGINT, ts BIGINT) ORDER BY ts;
        CREATE STREAM u (k VARCHAR, v BIGINT, ts BIGINT) ORDER BY ts;
        CREATE TABLE r (k VARCHAR PRIMARY KEY, w DOUBLE);
        CREATE QUERY puts AS INSERT INTO r SELECT k, inverse(v) FROM s;
        CREATE QUERY others AS INSERT INTO r SELECT k, 0.0 FROM u;
    """)
    reader = mill.sql("SELECT u.v, r.w FROM u JOIN r ON u.k = r.k").start(name="reader")
    mill.insert("s", [("a", 4, 1)])
    mill.insert("u", [("z", 1, 2)])
    mill.insert("s", [("b", 0, 3)])
    mill.insert("u", [("a", 2, 4), ("y", 3, 5), ("x", 4, 6)])
    mill.insert("s", [("c", 1, 7)])
    assert mill.sql("SELECT k, w FROM r ORDER BY k").rows() == [("a", 0.25), ("x", 0.0), ("y", 0.0), ("z", 0.0)]
    assert reader.take().rows() == [(1, 0.0), (2, 0.25), (3, 0.0)]  # the last tuple waits for the end of its time
    failed = str(mill.query("puts").error)
    assert "query puts failed" in failed and "function inverse(0) raised ZeroDivisionError" in failed
    assert mill.query("others").error is None and reader.error is None
