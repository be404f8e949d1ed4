"""Queries that can be spread over shards, and the keys of their streams."""

import pytest

from millstream.control.mill import LocalMill
from millstream.lang import parse
from millstream.lang.ast import SelectStatement
from millstream.logical.bind import bind_select
from millstream.logical.plan import EVERYWHERE
from millstream.optimizer import optimize
from millstream.physical.plan.partitioning import partition_keys

STREAMS = """
CREATE STREAM a (k BIGINT, j BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts;
CREATE STREAM b (k BIGINT, j BIGINT, w DOUBLE, ts BIGINT) ORDER BY ts;
CREATE TABLE t (id BIGINT, name VARCHAR);
"""
CASES = [
    ("SELECT v FROM a WHERE v > 1", {"a": ("k",)}),
    ("SELECT k, COUNT(*) FROM a [RANGE 10] GROUP BY k", {"a": ("k",)}),
    ("SELECT COUNT(*) FROM a [RANGE 10]", None),
    ("SELECT a.v, b.w FROM a [RANGE 5], b [RANGE 5] WHERE a.k = b.j", {"a": ("k",), "b": ("j",)}),
    ("SELECT a.v, b.w FROM a [RANGE 5], b [RANGE 5] WHERE a.k = b.j AND a.j = b.k", {"a": ("j", "k"), "b": ("k", "j")}),
    ("SELECT a.v, b.w FROM a [RANGE 5], b [RANGE 5] WHERE a.v < b.w", None),
    ("SELECT a.v, b.w FROM a [ROWS 5], b [RANGE 5] WHERE a.k = b.j", {"a": EVERYWHERE, "b": ("j",)}),
    ("SELECT a.v, b.w FROM a [ROWS 5], b [ROWS 0] WHERE a.k = b.k", {"a": EVERYWHERE, "b": ("k",)}),
    ("SELECT a.v, b.w FROM a [ROWS 5], b [ROWS 5] WHERE a.v < b.w", None),
    ("SELECT x.v, y.v AS w FROM a [ROWS 5] x, a y WHERE x.k = y.j", {"a": EVERYWHERE}),
    ("SELECT a.v, b.w FROM a [ROWS 5] LEFT JOIN b [ROWS 5] ON a.k = b.k", None),
    (
        "SELECT a.v, b.w FROM a, b [ROWS 5], b c WHERE a.k = b.k AND b.k = c.j",
        {"a": ("k",), "b": EVERYWHERE},
    ),
    (
        "SELECT k, COUNT(*) FROM (SELECT a.k AS k, b.j AS j FROM a [ROWS 5], b WHERE a.k = b.k) x [RANGE 9] GROUP BY k",
        {"a": EVERYWHERE, "b": ("k",)},
    ),
    ("SELECT a.v FROM a [ROWS 5], (SELECT k, COUNT(*) FROM b [RANGE 5] GROUP BY k) x [ROWS 5] WHERE a.k = x.k", None),
    (
        "SELECT a.v FROM a [ROWS 5], (SELECT k, COUNT(*) FROM b [RANGE 5] GROUP BY k) x [RANGE 5] WHERE a.k = x.k",
        {"a": EVERYWHERE, "b": ("k",)},
    ),
    ("SELECT a.v FROM a [ROWS 5], (SELECT k, COUNT(*) FROM a [RANGE 5] GROUP BY k) x [RANGE 5] WHERE a.k = x.k", None),
    ("SELECT x.v, y.v AS w FROM a [RANGE 5] x, a [RANGE 5] y WHERE x.k = y.j", None),
    ("SELECT x.v, y.v AS w FROM a [RANGE 5] x, a [RANGE 5] y WHERE x.k = y.k", {"a": ("k",)}),
    (
        "SELECT k, COUNT(*) FROM (SELECT a.k AS k, b.j AS j FROM a [RANGE 5], b [RANGE 5] WHERE a.k = b.k) x [RANGE 9] "
        "GROUP BY k",
        {"a": ("k",), "b": ("k",)},
    ),
    (
        "SELECT j, COUNT(*) FROM (SELECT a.k AS k, b.j AS j FROM a [RANGE 5], b [RANGE 5] WHERE a.k = b.k) x [RANGE 9] "
        "GROUP BY j",
        None,
    ),
    ("SELECT k FROM a UNION ALL SELECT j FROM b", {"a": ("k",), "b": ("j",)}),
    ("SELECT a.v, t.name FROM a JOIN t ON a.k = t.id", {"a": ("k",)}),
    ("SELECT a.v, b.w FROM a, b WHERE SEQ(a, b) MODE RECENT", None),
    ("SELECT a.v, b.w FROM a, b WHERE SEQ(a, b) MODE RECENT AND a.k = b.k", {"a": ("k",), "b": ("k",)}),
    ("SELECT window_end, k FROM a [RANGE 6 SLIDE 2] GROUP BY k, j", {"a": ("k", "j")}),
]


@pytest.mark.parametrize(("query", "keys"), CASES)
def test_partition_keys(query: str, keys: dict[str, tuple[str, ...]] | None) -> None:
    mill = LocalMill()
    mill.execute(STREAMS)
    statement = parse(query)[0]
    assert isinstance(statement, SelectStatement)
    plan = optimize(bind_select(statement.select, mill.catalog), mill.catalog)
    assert partition_keys(plan) == keys
