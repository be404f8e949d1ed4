"""NaN, negative zero and NULL as keys: every operator takes them as it takes the integers that stand for them, however
the input is cut, on any number of shards, and restarted."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.lang import parse_one
from tests.tries import rotated

TYPES = {
    "DOUBLE": ["nan", "-0.0", "NULL", "0.0", "1.5", "-nan"],
    "REAL": ["-nan", "0.0", "NULL", "-0.0", "1.5", "nan"],
    "DECIMAL": ["nan", "-0.0", "NULL", "0.0", "1.5", "-nan"],
    "VARCHAR": ["nan", "x", "NULL", "x", "y", "nan"],
    "INT": ["7", "0", "NULL", "0", "1", "7"],
}
CODES = {"nan": 7, "-0.0": 0, "0.0": 0, "1.5": 1, "x": 0, "y": 1}
"""The integers that stand for the values of the other types."""
SELF = "SELECT x.k AS k, y.k AS j, x.v, y.v AS w "
WRITTEN = "CREATE TABLE w (k {type} PRIMARY KEY, v BIGINT)"
UPSERT = "INSERT INTO w SELECT k, v FROM s2 ON CONFLICT DO UPDATE SET v = w.v * 2 + excluded.v"
SEEN = "SELECT x.k AS k, x.v, w.v AS w FROM s1 x LEFT JOIN w ON x.k = w.k"
GROUPS = "k, COUNT(*) AS n, SUM(v) AS v FROM s1"
PER = """CREATE AGGREGATE per (x {type}) : BIGINT { TABLE seen (k {type}, n BIGINT);
    INITIALIZE: { INSERT INTO seen VALUES (x, 1); }
    ITERATE: { UPDATE seen SET n = n + 1 WHERE k = x;
               INSERT INTO seen SELECT x, 1 WHERE NOT EXISTS (SELECT k FROM seen WHERE k = x); }
    TERMINATE: { INSERT INTO RETURN SELECT SUM(g.n * g.n) FROM (SELECT k, SUM(n) AS n FROM seen GROUP BY k) AS g; } }"""
QUERIES: dict[str, list[str]] = {
    "join": [SELF + "FROM s1 x JOIN s2 y ON x.k = y.k"],
    "window join": [SELF + "FROM s1 x [RANGE 3] JOIN s2 y [RANGE 5] ON x.k = y.k"],
    "two keys": [SELF + "FROM s1 x JOIN s2 y ON x.k = y.k AND x.one = y.one"],
    "rows join": [SELF + "FROM s1 x [ROWS 2], s2 y [ROWS 3] WHERE x.k = y.k"],
    "one-sided": [SELF + "FROM s1 x OVER (RANGE 4 PRECEDING), s2 y WHERE x.k = y.k"],
    "self join": [SELF + "FROM s1 x [RANGE 4], s1 y [RANGE 4] WHERE x.k = y.k AND x.v < y.v"],
    "left join": [SELF + "FROM s1 x [RANGE 3] LEFT JOIN s2 y [RANGE 3] ON x.k = y.k"],
    "full join": [SELF + "FROM s1 x FULL JOIN s2 y ON x.k = y.k"],
    "thrifty join": [SELF + "FROM s1 x [RANGE 4] THRIFTY JOIN s2 y [RANGE 4] ON x.k = y.k"],
    "impatient join": [SELF + "FROM s1 x [RANGE 4] IMPATIENT JOIN s2 y [RANGE 4] ON x.k = y.k"],
    "key join": [SELF + "FROM s1 x OVER (RANGE 6 PRECEDING) KEY JOIN, s2 y WHERE x.k = y.k"],
    "three": [SELF + "FROM s1 x [ROWS 3], s2 y [RANGE 8], s3 z [ROWS 2] WHERE x.k = y.k AND y.k = z.k"],
    "condition": [SELF + "FROM s1 x [RANGE 4], s2 y [RANGE 4] WHERE x.k = y.k AND x.k >= y.k AND x.k IN (y.k, x.k)"],
    "recent": [SELF + "FROM s1 x, s2 y WHERE SEQ(x, y) MODE RECENT AND x.k = y.k"],
    "recent once": [
        SELF + "FROM s1 x OVER (UNLIMITED PRECEDING) KEY JOIN, s2 y WHERE SEQ(x, y) MODE RECENT AND x.k = y.k"
    ],
    "chronicle": [SELF + "FROM s1 x, s2 y WHERE SEQ(x, y) MODE CHRONICLE AND x.k = y.k"],
    "chronicle if": [SELF + "FROM s1 x, s2 y WHERE SEQ(x, y) MODE CHRONICLE AND x.k = y.k AND x.v < y.v"],
    "table": ["SELECT x.k AS k, t.k AS j, x.v, t.v AS w FROM s1 x LEFT JOIN t ON x.k = t.k"],
    "written table": [WRITTEN, UPSERT, SEEN],
    "partitioned table": [
        WRITTEN + " WITH (partitioned = true)",
        UPSERT,
        "UPDATE w SET v = w.v + s3.v FROM s3 WHERE w.k = s3.k",
        SEEN,
    ],
    "deletes": [WRITTEN, UPSERT, "DELETE FROM w USING s3 WHERE w.k = s3.k AND s3.v > 3", SEEN],
    "distinct": ["SELECT DISTINCT k FROM s1"],
    "distinct pairs": ["SELECT DISTINCT k, one FROM s1"],
    "groups": [f"SELECT {GROUPS} GROUP BY k"],
    "windows": [f"SELECT window_end, {GROUPS} [RANGE 6 SLIDE 2] GROUP BY k"],
    "windows of windows": [
        "SELECT window_end, k, SUM(v) AS v FROM "
        f"(SELECT window_end, {GROUPS} [RANGE 2] GROUP BY k) [RANGE 6 SLIDE 4] GROUP BY k"
    ],
    "early": ["SELECT k, COUNT(*) AS n, finality, revision FROM s1 GROUP BY k EMIT EARLY"],
    "early windows": ["SELECT window_end, k, SUM(v) AS n, finality, revision FROM s1 [RANGE 5] GROUP BY k EMIT EARLY"],
    "counted": ["SELECT window_end, COUNT(DISTINCT k) AS n, APPROX_DISTINCT(k) AS a FROM s1 [RANGE 6]"],
    "running": ["SELECT k, v, SUM(v) OVER (PARTITION BY k ROWS 2 PRECEDING) AS z FROM s1"],
    "expiring": ["SELECT k, v, MAX(v) OVER (PARTITION BY k RANGE 5 PRECEDING ACTIVE EXPIRATION) AS z FROM s1"],
    "by row": [PER, "SELECT k, v, per(k) OVER (PARTITION BY one ROWS 4 PRECEDING) AS z FROM s1"],
    "own aggregate": [PER, "SELECT window_end, per(k) AS z FROM s1 [RANGE 8]"],
    "own aggregate by key": [PER, "SELECT window_end, k, per(k) AS z FROM s1 [RANGE 8] GROUP BY k"],
    "denoise": ["SELECT k, v FROM DENOISE(TABLE s1, DESCRIPTOR(k), 5, 2) AS x"],
    "closed": ["SELECT k, v FROM c"],
}
GROUPED = {name for name, (*_, query) in QUERIES.items() if "GROUP BY k" in query or "DISTINCT k" in query}
"""Those whose keys are printed in their normal form."""
WAYS = [(type_, shards, restarts) for type_ in TYPES for shards, restarts in ((1, False), (2, False), (3, True))]


def outcome(name: str, type_: str, shards: int = 1, *, cut: bool = False, restart: bool = False) -> list[Any]:
    """The rows of a query. NaN closes nothing, so the integer that stands for it does not either."""
    values, closing = TYPES[type_], [1] if type_ == "INT" else [0, 1]
    mill = LocalMill(Options(shards=shards), jobs=LocalJobs(shards=shards))
    *before, query = QUERIES[name]
    text = " ".join([*before, query])
    places = {"s1": 5, "s2": 7, "s3": 11, "c": 5}
    streams = [stream for stream in places if f" {stream}" in text]
    for stream in streams:
        mill.execute(f"CREATE STREAM {stream} (k {type_}, one BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
    if name == "closed":
        mill.execute(f"CREATE STREAM d (k {type_}, ts BIGINT) ORDER BY ts CLOSES c (k) BY (k)")
    if name == "table":
        mill.execute(f"CREATE TABLE t (k {type_}, v BIGINT)")
        for value in values:
            mill.feed_line("t", f"{value} | 1")
    for statement in before:
        mill.execute(statement.replace("{type}", type_))
    mill.add_query("q", query)
    rows: list[Any] = []
    for number in range(12):
        for stream in streams:
            mill.feed_line(stream, f"{values[number * places[stream] % 6]} | 1 | {number} | {number // 2}")
        if number == 7 and name == "closed":
            for place in closing if type_ != "VARCHAR" else [1]:
                mill.feed_line("d", f"{values[place]} | {number // 2}")
        if cut or number % 4 == 3:
            mill.batch()
        if "finality" in query and number % 4 == 3:
            mill.prod("q")
        rows += mill.take_rows("q").rows()
        mill = mill.restarted() if restart and number % 4 == 1 else mill
    for stream in streams:
        mill.feed_line(stream, "[*, *, *, *]")
    if name == "closed":
        mill.feed_line("d", "[*, *]")
    mill.batch()
    return rows + mill.take_rows("q").rows()


def coded(rows: list[Any]) -> Counter[Any]:
    return Counter(tuple(CODES.get(str(value), value) for value in row) for row in rows)


@pytest.mark.parametrize(("name", "way"), rotated(QUERIES, WAYS, keep=1))
def test_values_count_as_integers_do(name: str, way: tuple[str, int, bool]) -> None:
    type_, shards, restart = way
    whole, found = outcome(name, type_), outcome(name, type_, shards, cut=True, restart=restart)
    assert coded(found) == coded(whole) == coded(outcome(name, "INT"))
    assert whole
    assert Counter(map(str, found)) == Counter(map(str, whole))
    assert "-0.0" not in str(found) or name not in GROUPED


def test_a_joined_row_has_its_own_zeros() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM a (k DOUBLE, ts BIGINT) ORDER BY ts; CREATE STREAM b (k DOUBLE, ts BIGINT) ORDER BY ts")
    mill.add_query("q", "SELECT a.k, b.k AS j, 1.0 * b.k AS l, b.* FROM a [RANGE 9] JOIN b [RANGE 9] ON a.k = b.k")
    mill.add_query("n", "SELECT DISTINCT b.k FROM a JOIN b ON a.k = b.k")
    mill.add_query("g", "SELECT b.k, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY b.k")
    mill.feed_line("a", "0.0 | 1")
    mill.feed_line("b", "-0.0 | 2")
    for stream in "ab":
        mill.feed_line(stream, "[*, *]")
    mill.batch()
    assert repr(mill.take_rows("q").rows()) == "[(0.0, -0.0, -0.0, -0.0, 2)]"
    assert repr(mill.take_rows("n").rows()) == "[(0.0,)]"
    assert repr(mill.take_rows("g").rows()) == "[(0.0, 1)]"


def test_nan_in_a_primary_key_is_never_late() -> None:
    def accepted(*, cut: bool) -> tuple[str, int]:
        mill = LocalMill()
        mill.execute("CREATE STREAM p (k DOUBLE, v BIGINT) PRIMARY KEY (k)")
        mill.add_query("q", "SELECT k, v FROM p")
        for number, value in enumerate(["nan", "0.0", "-nan", "-0.0", "1.5", "nan", "1.5"]):
            mill.feed_line("p", f"{value} | {number}")
            mill.batch() if cut else None
        mill.batch()
        return str(mill.take_rows("q").rows()), mill.counts("p")["late"]

    assert accepted(cut=False) == accepted(cut=True) == ("[(nan, 0), (0.0, 1), (nan, 2), (1.5, 4), (nan, 5)]", 2)


def test_tables_compare_as_streams_do() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (x REAL, y DOUBLE); CREATE TABLE t (x REAL, y DOUBLE)")
    tests = [f"x {op} y" for op in ("=", "<>", "<", "<=", ">", ">=")]
    tests += ["x IN (y, 1.5)", "x NOT IN (y, 2)", "x BETWEEN y AND 1.5", "1.5 BETWEEN x AND y", "NULLIF(x, y) IS NULL"]
    items = ", ".join(f"{test} AS c{number}" for number, test in enumerate(tests))
    mill.add_query("q", f"SELECT x, y, {items} FROM s")
    for x, y in product(["nan", "-0.0", "0.0", "1.5", "inf", "NULL"], ["-nan", "0.0", "-0.0", "2", "-inf", "NULL"]):
        mill.feed_line("t", f"{x} | {y}")
        mill.feed_line("s", f"{x} | {y}")
    mill.batch()

    def of_table(text: str) -> list[Any]:
        return mill.written.select(parse_one(text).select).rows()  # type: ignore[attr-defined]

    found = mill.take_rows("q").rows()
    assert str(found) == str(of_table(f"SELECT x, y, {items} FROM t"))
    rank = {"nan": 3, "inf": 2.5}
    for x, y, *values in found:
        one, other = (value if value is None else rank.get(str(value), value) for value in (x, y))
        if one is not None and other is not None:
            assert values[:6] == [one == other, one != other, one < other, one <= other, one > other, one >= other]
    for query in ("SELECT DISTINCT x FROM t", "SELECT x FROM t UNION SELECT y FROM t", "SELECT x FROM t GROUP BY x"):
        texts = [*map(str, of_table(query))]
        assert len({*texts}) == len(texts) and "(-0.0,)" not in texts
