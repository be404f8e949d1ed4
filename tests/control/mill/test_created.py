"""CREATE: IF NOT EXISTS, NOT NULL, options of streams, what tables report."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from millstream.control.mill import LocalMill
from millstream.errors import MillstreamError

STREAM = "CREATE STREAM IF NOT EXISTS s (k BIGINT, ts BIGINT) ORDER BY ts"
DERIVED = "CREATE STREAM IF NOT EXISTS d AS SELECT k FROM s"
TABLE = "CREATE TABLE IF NOT EXISTS t (k BIGINT)"
QUERY = "CREATE QUERY IF NOT EXISTS q AS SELECT k FROM s"


def test_if_not_exists_changes_nothing_the_second_time(caplog: pytest.LogCaptureFixture) -> None:
    mill = LocalMill()
    for text in (STREAM, DERIVED, TABLE, QUERY):
        mill.execute(text)
    mill.insert("s", [(1, 1)])
    mill.insert("t", [(7,)])
    noted = mill.journal.noted
    for text in (STREAM, DERIVED, TABLE, QUERY, QUERY.replace("IF NOT EXISTS", "if not exists")):
        mill.execute(text)
    assert mill.journal.noted == noted and not caplog.records
    assert mill.tables["t"].rows() == [(7,)] and mill.take_rows("q").rows() == [(1,)]
    mill = mill.restarted()
    mill.execute(f"{STREAM}; {DERIVED}; {TABLE}; {QUERY}")
    mill.insert("s", [(2, 2)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(2,)] and not caplog.records


def test_another_definition_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    mill = LocalMill()
    mill.execute(f"{STREAM}; {DERIVED}; {TABLE}; {QUERY}")
    others = [STREAM.replace("BIGINT", "INT"), DERIVED.replace("k FROM", "ts FROM"), TABLE.replace("k", "x")]
    for number, text in enumerate([*others, QUERY.replace("k FROM", "ts FROM")], 1):
        mill.execute(text)
        assert len(caplog.records) == number
        assert "exists already with another definition, which stays: CREATE" in caplog.records[-1].getMessage()
    assert mill.catalog.stream("s").schema.names == ("k", "ts")


def test_a_name_of_another_kind_is_taken() -> None:
    mill = LocalMill()
    mill.execute(f"{STREAM}; {TABLE}")
    for text in ("CREATE TABLE IF NOT EXISTS s (k BIGINT)", "CREATE STREAM IF NOT EXISTS t (k BIGINT)"):
        with pytest.raises(MillstreamError, match=r"M2010: '.' exists already"):
            mill.execute(text)


def test_not_null_makes_bad_rows() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT NOT NULL, v BIGINT NULL, ts BIGINT NOT NULL) ORDER BY ts")
    mill.execute("CREATE QUERY q AS SELECT k, v FROM s; CREATE QUERY b AS SELECT reason FROM s__bad")
    mill.insert("s", [(1, None, 1), (None, 2, 2)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(1, None)]
    assert mill.take_rows("b").rows() == [("column 'k' must not be NULL",)]
    mill.execute("CREATE TABLE t (k BIGINT NOT NULL)")
    with pytest.raises(MillstreamError, match=r"M2095: row 2 does not fit table 't'\n  .*must not be NULL"):
        mill.insert("t", [(1,), (None,)])


def test_the_key_of_a_table_appears_once() -> None:
    mill = LocalMill()
    mill.execute("CREATE TABLE t (k BIGINT, x BIGINT) PRIMARY KEY (k)")
    mill.insert("t", [(1, 1), (2, 2)])
    with pytest.raises(MillstreamError, match=r"M2095: table 't' has the key \(k = 2\) twice"):
        mill.insert("t", [(3, 3), (2, 4)])
    assert mill.tables["t"].rows() == [(1, 1), (2, 2)]


def test_a_table_reports_its_bad_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "t.csv").write_text("k,x\n1, 2\ntwo,3\n")
    mill = LocalMill()
    with caplog.at_level(logging.WARNING, "millstream"):
        mill.execute(f"CREATE TABLE t (k BIGINT, x DOUBLE) WITH (connector = 'csv', path = '{tmp_path}/t.csv')")
    assert "line 3 of t.csv: column 'k': 'two' is not a value of type BIGINT" in caplog.text
    assert mill.execute("SHOW TABLES") == "t (k BIGINT, x DOUBLE): 1 row, 1 bad"
    assert mill.counts("t") == {"accepted": 1, "late": 0, "bad": 1}
    mill.execute("DROP TABLE t; CREATE TABLE t (k BIGINT)")
    assert mill.execute("SHOW TABLES") == "t (k BIGINT): 0 rows"


def test_the_files_of_a_stream_need_not_exist_when_it_is_created(tmp_path: Path) -> None:
    mill = LocalMill()
    mill.execute(f"CREATE STREAM s (k BIGINT) WITH (connector = 'csv', path = '{tmp_path}/in', null = 'NA')")
    with pytest.raises(MillstreamError, match="M5040"):
        mill.execute("CREATE QUERY q AS SELECT k FROM s")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("k\n1\nNA\n 2 \n1e400\n")
    mill.execute("CREATE QUERY q AS SELECT k FROM s")
    mill.drain()
    assert mill.take_rows("q").rows() == [(1,), (None,), (2,)]
    assert mill.counts("s")["bad"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "COUNT(DISTINCT x) AS n, SUM(DISTINCT x) AS total FROM s [RANGE 20 SLIDE 10]",
        "COUNT(x) AS n, SUM(x) AS total FROM (SELECT k, x FROM s [RANGE 20 SLIDE 10] GROUP BY k, x) [RANGE 10]",
    ],
)
def test_distinct_values(text: str) -> None:
    """Of a sliding window, with NULL, in one level or two: the same as counted by hand."""
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT, x BIGINT, ts BIGINT) ORDER BY ts")
    mill.execute(f"CREATE QUERY q AS SELECT window_end, k, {text} GROUP BY k")
    rows = [(1, 5, 1), (1, 5, 3), (1, 6, 9), (2, 5, 9), (1, None, 11), (1, 5, 12), (1, 7, 13), (1, 7, 31), (1, 1, 60)]
    mill.insert("s", rows)
    mill.batch()
    expected = {}
    for end in range(10, 60, 10):
        for key in (1, 2):
            values = {x for k, x, ts in rows if k == key and end - 20 <= ts < end}
            if values:
                known = values - {None}
                expected[end, key] = len(known), sum(x for x in known if x is not None) if known else None
    assert {(end, k): (n, total) for end, k, n, total in mill.take_rows("q").rows()} == expected


def test_the_sink_of_a_query_that_is_explained_is_checked(tmp_path: Path) -> None:
    mill = LocalMill()
    mill.execute(STREAM)
    for into, said in (("consol", "M6003: unknown sink 'consol'"), ("parquet", "M6040: sink 'parquet' needs option")):
        with pytest.raises(MillstreamError, match=said):
            mill.execute(f"EXPLAIN SELECT k FROM s INTO {into}")
    assert "Scan" in mill.execute(f"EXPLAIN SELECT k FROM s INTO parquet WITH (path = '{tmp_path}/new')")
    assert not (tmp_path / "new").exists()
