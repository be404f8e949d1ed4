"""Early rows through every operator: an early answer over all tuples of a window equals its final row."""

from __future__ import annotations

import pytest

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill import LocalMill
from millstream.control.mill.demand import send_prod

SUMS = "(SELECT k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k) [RANGE 5]"
OTHERS = "(SELECT k, SUM(w) AS total FROM t [RANGE 10] GROUP BY k) [RANGE 5]"
SMALL = "(SELECT k, SUM(v) AS total FROM s [RANGE 5] GROUP BY k)"
TEN = "WINDOW [RANGE 10]"
SLIDING = "PARTITION BY k RANGE 99 PRECEDING"
AVERAGE = """
CREATE AGGREGATE average(next BIGINT) : DOUBLE {
    TABLE state(s BIGINT, n BIGINT);
    INITIALIZE : { INSERT INTO state VALUES (next, 1); }
    ITERATE : { UPDATE state SET s = s + next, n = n + 1; }
    TERMINATE : { INSERT INTO RETURN SELECT s / n FROM state; }
}"""
QUERIES = {
    "outer join": f"COUNT(*) AS n, COUNT(b.total) AS m FROM {SUMS} a LEFT JOIN {OTHERS} b ON a.k = b.k {TEN}",
    "three streams": f"COUNT(*) AS n FROM {SUMS} a, {OTHERS} b, {SUMS} c WHERE a.k = b.k AND b.k = c.k {TEN}",
    "running aggregate": f"MAX(r) AS m FROM (SELECT SUM(total) OVER (PARTITION BY k) AS r FROM {SMALL}) [RANGE 10]",
    "sliding aggregate": f"MAX(r) AS m FROM (SELECT SUM(total) OVER ({SLIDING}) AS r FROM {SMALL}) [RANGE 10]",
    "limit": f"COUNT(*) AS n FROM (SELECT k FROM {SMALL} LIMIT 3) [RANGE 10]",
    "self join": "COUNT(*) AS n FROM s [RANGE 5] a, s [RANGE 5] b WHERE a.k = b.k WINDOW [RANGE 10]",
    "sequence": f"COUNT(*) AS n FROM s a, t b WHERE SEQ(a, b) MODE RECENT AND a.k = b.k {TEN}",
    "user-defined aggregate": f"average(total) AS m FROM {SMALL} [RANGE 10]",
    "distinct": f"COUNT(*) AS n FROM (SELECT DISTINCT total FROM {SMALL}) [RANGE 10]",
    "three levels": f"SUM(m) AS n FROM (SELECT MAX(total) AS m FROM {SMALL} [RANGE 5]) [RANGE 10]",
}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", QUERIES)
def test_early_rows_equal_final_ones(name: str, shards: int) -> None:
    mill = LocalMill(Options.read(shards=shards, contracts="off"), jobs=LocalJobs(shards=shards))
    mill.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
    mill.execute("CREATE STREAM t (k BIGINT, w BIGINT, ts BIGINT) ORDER BY ts")
    mill.execute(AVERAGE)
    mill.add_query("q", f"SELECT window_end, finality, {QUERIES[name]}")
    mill.insert("s", [(1, 1, 1), (2, 2, 2), (1, 1, 6)])
    mill.insert("t", [(1, 10, 1), (2, 20, 3), (1, 1, 7)])
    mill.prod("q", "{window_end <= 10}")
    early = mill.take_rows("q").rows()
    assert early and {row[1] for row in early} == {"early"}
    mill.insert("s", [(1, 0, 31)])
    mill.insert("t", [(9, 0, 31)])
    mill.batch()
    final = [row for row in mill.take_rows("q").rows() if row[0] <= 10]
    assert [(end, *values) for end, _, *values in early] == [(end, *values) for end, _, *values in final]


def test_pairs_that_a_join_on_disk_owes_are_counted() -> None:
    def run(memory: int) -> list[tuple[object, ...]]:
        mill = LocalMill(Options.read(contracts="off", join_memory=memory))
        mill.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
        mill.execute("CREATE STREAM t (k BIGINT, w BIGINT, ts BIGINT) ORDER BY ts")
        sums = "(SELECT k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k)"
        query = f"SELECT window_end, COUNT(*) AS n, finality FROM {sums} a, t b WHERE a.k = b.k WINDOW [RANGE 50]"
        mill.add_query("q", query)
        found: list[tuple[object, ...]] = []
        for batch in range(6):
            rows = [(k, k, batch * 10 + 5) for k in range(400)]
            mill.insert("s", rows)
            mill.insert("t", rows)
            mill.batch()
            mill.prod("q")
            found += mill.take_rows("q").rows()
        return found

    assert run(memory=10_000) == run(memory=0)


def test_a_prod_of_a_query_ends_where_only_others_read() -> None:
    """The other query keeps its panes as they are, and no copy of the prod is waited for."""
    mill = LocalMill()
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts")
    for name, aggregate in (("a", "SUM(v)"), ("b", "MAX(v)")):
        mill.add_query(name, f"SELECT window_end, {aggregate} AS x, finality FROM s [RANGE 20 SLIDE 10]")
    mill.insert("s", [(1, 1, 5), (2, 2, 7)])
    mill.batch()
    send_prod(mill, "a", "{}")
    mill.insert("s", [(3, 1, 1)])
    mill.batch()
    assert [row[2] for row in mill.take_rows("a").rows()] == ["early", "early"] and not mill.take_rows("b").height
    (job,) = mill.jobs.all()
    assert isinstance(job, LocalJob)
    for label in job.heard:
        assert not any(node.expected or node.met for node in job.host(label).graph.operators.values())
