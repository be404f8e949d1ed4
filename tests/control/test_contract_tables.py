"""Contracts of tables that streams write: which DELETEs bound the rows, against running queries."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import PlanError

STREAMS = """
CREATE STREAM a (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM b (k BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM p (k BIGINT, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +);
CREATE STREAM w (k BIGINT, ts BIGINT) WATERMARK FOR ts AS ts - 5;
CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, seen BIGINT NOT NULL, maybe BIGINT, size DOUBLE NOT NULL);
"""
UPSERT = "INSERT INTO t SELECT k, v, ts, ts, 1.0 FROM a ON CONFLICT DO UPDATE SET v = excluded.v, seen = excluded.seen"
REMOVING = [
    "DELETE FROM t USING b WHERE t.seen < b.ts - 20",
    "DELETE FROM t USING b",
    "DELETE FROM t AS x USING b WHERE b.ts > x.seen AND x.k <= b.ts",
    "DELETE FROM t USING w WHERE t.seen <= w.ts",
    "DELETE FROM t USING (SELECT ts + 1 AS soon FROM b) c WHERE t.seen < c.soon",
]
LACKING = [
    "DELETE FROM t USING b WHERE t.k = b.k",  # the key need not come
    "DELETE FROM t USING b WHERE t.seen < b.ts - 20 AND b.k = 1",  # nor does such a tuple
    "DELETE FROM t USING (SELECT ts FROM b WHERE k < 0) c WHERE t.seen < c.ts",
    "DELETE FROM t USING b WHERE t.maybe < b.ts - 20",  # NULL stays
    "DELETE FROM t USING b WHERE t.size < b.ts",  # NaN stays
    "DELETE FROM t USING b WHERE t.seen > b.ts",
    "DELETE FROM t USING b WHERE t.seen < -b.ts",
    "DELETE FROM t USING b WHERE t.seen < t.k + b.ts",
    "DELETE FROM t USING p WHERE t.seen < p.ts - 20",  # time moves without tuples
    "UPDATE t SET v = 0 FROM b WHERE t.seen < b.ts",
]
READER = "SELECT b.k, t.v FROM b JOIN t ON b.k = t.k"


def mill_with(*statements: str) -> LocalMill:
    mill = LocalMill(Options(contracts="off"))
    mill.execute(STREAMS)
    for number, statement in enumerate(statements):
        mill.execute(f"CREATE QUERY d{number} AS {statement}")
    return mill


def rows(mill: LocalMill, steps: range) -> int:
    """Run these steps; each inserts a key of its own. Return the number of rows of the table."""
    for step in steps:
        mill.insert("a", [(step - 1000, 1, step)])
        for stream in ("b", "w"):
            mill.insert(stream, [(step % 5 + 2, step)])
        mill.punctuate("p", f"[ts < {step}]")
        mill.batch()
    return int(mill.execute("SELECT COUNT(*) FROM t"))


@pytest.mark.parametrize("statement", REMOVING)
def test_a_delete_that_removes_every_row(statement: str) -> None:
    mill = mill_with(statement)
    for query in (UPSERT, READER):
        said = mill.execute(f"EXPLAIN CONTRACT {query}")
        assert said.endswith("contract: bounded") and "of query d0 and " in said, said
    mill.execute(f"CREATE QUERY i AS {UPSERT}")
    few = rows(mill, range(60))
    assert rows(mill, range(60, 200)) <= few + 2 < 40


@pytest.mark.parametrize("statement", LACKING)
def test_a_delete_that_need_not(statement: str) -> None:
    mill = mill_with(statement)
    said = mill.execute(f"EXPLAIN CONTRACT {UPSERT}")
    deletes = statement.startswith("DELETE")
    lacks = "a row of t stays until a DELETE removes it"
    assert f"{lacks}{', and d0 need not remove every row' if deletes else ''}\n" in said
    if "maybe" not in statement and "size" not in statement and "t.k + " not in statement and "> b.ts" not in statement:
        mill.execute(f"CREATE QUERY i AS {UPSERT}")
        assert rows(mill, range(60)) + 100 < rows(mill, range(60, 200))


def test_an_update_may_keep_every_row() -> None:
    mill = mill_with(REMOVING[0], "UPDATE t SET seen = b.ts FROM b")
    assert mill.execute(f"EXPLAIN CONTRACT {UPSERT}").endswith("contract: unbounded: 1 part")
    mill.execute(f"CREATE QUERY i AS {UPSERT}")
    assert rows(mill, range(60)) + 100 < rows(mill, range(60, 200))
    mill.execute("DROP QUERY d1")
    assert mill.execute("EXPLAIN CONTRACT i").endswith("contract: bounded")
    mill.execute("DROP QUERY d0")
    assert mill.execute("EXPLAIN CONTRACT i").endswith("contract: unbounded: 1 part")


def test_enforced_the_delete_comes_first() -> None:
    with ms.connect(local=True, contracts="enforce") as mill:
        mill.sql(STREAMS)
        with pytest.raises(PlanError, match=r"(?s)M3033: .* until a DELETE removes it.*hint: start DELETE FROM t"):
            mill.sql(f"CREATE QUERY i AS {UPSERT}")
        mill.sql(f"CREATE QUERY d AS {REMOVING[0]}")
        mill.sql(f"CREATE QUERY i AS {UPSERT}")
        mill.sql(f"CREATE QUERY r AS {READER}")
        assert mill.query("i").contract().bounded
        mill.insert("a", [(1, 1, 1)])
        mill.insert("b", [(1, 2)])
        assert mill.query("i").progress().bounds.rows is None  # how long a row stays is not known
