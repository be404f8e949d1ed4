"""SELECT over tables: unions, outer joins, aliases in HAVING, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.control.mill import LocalMill
from millstream.errors import MillstreamError
from millstream.lang import parse_one

TABLES = """
CREATE TABLE items (k BIGINT, n VARCHAR, x DOUBLE);
CREATE TABLE prices (k BIGINT PRIMARY KEY, y BIGINT);
INSERT INTO items VALUES (1, 'a', 1.5), (2, 'b', 2.5), (1, 'c', 3.5), (9, 'd', 0);
INSERT INTO prices VALUES (1, 10), (2, 20), (3, 30);
"""


@pytest.fixture
def mill() -> LocalMill:
    made = LocalMill()
    made.execute(TABLES)
    return made


def rows(mill: LocalMill, text: str) -> list[tuple[Any, ...]]:
    return mill.written.select(parse_one(text).select).rows()  # type: ignore[attr-defined]


ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "SELECT k FROM items UNION SELECT k FROM prices ORDER BY k": [(1,), (2,), (3,), (9,)],
    "SELECT k FROM items UNION ALL SELECT k FROM prices ORDER BY k DESC LIMIT 3": [(9,), (3,), (2,)],
    "SELECT k FROM prices UNION SELECT k FROM prices UNION ALL SELECT k + 7 FROM prices ORDER BY k": [
        (1,), (2,), (3,), (8,), (9,), (10,),
    ],
    "SELECT COUNT(*) FROM (SELECT k FROM items UNION SELECT k FROM prices) x": [(4,)],
    "SELECT k FROM prices WHERE k IN (SELECT k FROM items UNION SELECT 3 FROM items)": [(1,), (2,), (3,)],
    "SELECT n, y FROM items i RIGHT JOIN prices p ON i.k = p.k ORDER BY y, n": [
        ("a", 10), ("c", 10), ("b", 20), (None, 30),
    ],
    "SELECT * FROM items RIGHT JOIN prices USING (k) ORDER BY y DESC LIMIT 1": [(None, None, None, 3, 30)],
    "SELECT k, COUNT(*) AS c FROM items GROUP BY k HAVING c > 1": [(1, 2)],
    "SELECT k, SUM(x) + 1 AS c FROM items GROUP BY k HAVING c > 1 AND COUNT(*) < 2 ORDER BY c": [(2, 3.5)],
    "SELECT k, (SELECT y FROM prices p WHERE p.k = i.k) FROM items i ORDER BY n LIMIT 2": [(1, 10), (2, 20)],
    "SELECT (SELECT n FROM items ORDER BY n DESC LIMIT 1) FROM prices LIMIT 1": [("d",)],
    "SELECT (SELECT n FROM items WHERE k = 77) FROM prices LIMIT 1": [(None,)],
}  # fmt: skip


@pytest.mark.parametrize("text", ANSWERS)
def test_the_rows_of_a_query(mill: LocalMill, text: str) -> None:
    assert rows(mill, text) == ANSWERS[text]


REFUSED = {
    "SELECT k, (SELECT n FROM items i WHERE i.k = p.k) FROM prices p": (
        "M3085: a subquery in place of a value has several rows: (SELECT i.n FROM items i WHERE (i.k = p.k)) "
        "(line 1, column 11)"
    ),
    "SELECT k FROM prices WHERE k = (SELECT k FROM items)": "M3085: a subquery in place of a value has several rows",
    "SELECT (SELECT k FROM items GROUP BY k) FROM prices": "M3085",
    "SELECT (SELECT DISTINCT k FROM items) FROM prices": "M3085",
    "SELECT (SELECT k FROM items ORDER BY k LIMIT 2) FROM prices": "M3085",
    "SELECT k, SUM(y) OVER (PARTITION BY k) FROM prices": "M3054: SUM(…) OVER is not possible over tables",
    "SELECT k, RANK() OVER (ORDER BY y) FROM prices": "M3054: RANK(…) OVER is not possible over tables",
    "SELECT n, y FROM items i FULL JOIN prices p ON i.k = p.k": "M3020: FULL JOIN is not available over tables",
    "SELECT a.k FROM items a JOIN items b ON a.k = b.k RIGHT JOIN prices p ON p.k = b.k": "M3020: RIGHT JOIN",
    "SELECT k FROM items EXCEPT SELECT k FROM prices": "M3019: EXCEPT is not available over tables",
    "SELECT k FROM items INTERSECT SELECT k FROM prices": "M3019: INTERSECT is not available over tables",
    "SELECT k FROM items UNION SELECT n FROM items": "M2018: UNION: column 'k' mixes BIGINT and VARCHAR",
    "SELECT k FROM items UNION SELECT k, y FROM prices": "M2018: UNION of 1 and 2 columns",
    "SELECT k FROM items LIMIT 1 ORDER BY k": "M1001: ORDER BY must stand before LIMIT (line 1, column 29)",
    "SELECT k FROM items ORDER BY k ORDER BY n": "M1007: ORDER BY appears twice",
    "SELECT k FROM items EMIT EARLY": "M3035: EMIT EARLY needs a stream",
    "SELECT k FROM items [RANGE 5]": "M3003: a table has no windows",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(mill: LocalMill, text: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        rows(mill, text)
    assert str(caught.value).startswith(REFUSED[text])
    assert caught.value.line is not None and (caught.value.hint or caught.value.code in ("M1007", "M2018"))


def test_a_write_with_a_subquery_of_several_rows_changes_nothing(mill: LocalMill) -> None:
    with pytest.raises(MillstreamError, match="several rows"):
        mill.execute("UPDATE prices SET y = (SELECT y FROM prices)")
    assert rows(mill, "SELECT y FROM prices ORDER BY y") == [(10,), (20,), (30,)]


def test_a_body_with_a_subquery_of_several_rows_fails(mill: LocalMill) -> None:
    mill.execute("""
        CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts;
        CREATE AGGREGATE held(next BIGINT) : BIGINT {
            TABLE seen(v BIGINT);
            INITIALIZE: ITERATE: {
                INSERT INTO seen VALUES (next);
                INSERT INTO RETURN SELECT (SELECT v FROM seen) FROM seen WHERE v = next;
            }
        }
    """)
    mill.add_query("q", "SELECT held(k) AS h FROM s")
    mill.insert("s", [(1, 1)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(1,)]
    mill.insert("s", [(2, 2)])
    with pytest.raises(MillstreamError, match=r"M6053: .*a subquery in place of a value has several rows"):
        mill.batch()
        mill.take_rows("q")


def test_a_table_is_no_stream(mill: LocalMill) -> None:
    mill.execute("CREATE STREAM s (k BIGINT)")
    for text, said, hint in (
        ("DROP TABLE s", "'s' is a stream", "DROP STREAM s"),
        ("DROP STREAM items", "'items' is a table", "DROP TABLE items"),
        ("CREATE QUERY q AS SELECT k FROM items", "'items' is a table", "A continuous query reads at least"),
    ):
        with pytest.raises(MillstreamError) as caught:
            mill.execute(text)
        assert caught.value.message == said and caught.value.hint.startswith(hint)
    mill.execute("DROP TABLE IF EXISTS s; DROP STREAM s")


def test_a_table_without_files_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    LocalMill().execute(f"CREATE TABLE t (k BIGINT) WITH (connector = 'csv', path = '{tmp_path}/*.csv')")
    assert f"M5067: table 't' is empty: no file in '{tmp_path}' matches '*.csv'" in caplog.text
