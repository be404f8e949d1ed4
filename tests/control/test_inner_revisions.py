"""`revision` and `estimate` in a subquery: the numbers and the history belong to the query that is asked."""

from __future__ import annotations

import millstream as ms

STREAM = "CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts"


def outer(inner: str) -> str:
    below = f"SELECT k, SUM(v) AS total, {inner} AS i FROM s [RANGE 10] GROUP BY k"
    return f"SELECT window_end, MAX(total) AS m, MAX(i) AS i, finality FROM ({below}) [RANGE 20]"


def test_revisions_are_counted_for_each_query() -> None:
    with ms.connect(local=True) as mill:
        mill.sql(STREAM)
        asked, other = (mill.sql(outer("revision")).start(name=name) for name in ("asked", "other"))
        mill.insert("s", [(1, 1, 1), (2, 2, 5)])
        asked.prod()
        assert (asked.take().rows(), other.take().rows()) == ([(20, 5, 1, "early")], [])
        mill.prod("s")
        assert (asked.take().rows(), other.take().rows()) == ([(20, 5, 2, "early")], [(20, 5, 1, "early")])
        mill.insert("s", [(11, 1, 1)])
        asked.prod()
        assert asked.take().rows() == [(20, 5, 3, "early")]
        mill.insert("s", [(21, 1, 1)])
        assert (asked.take().rows(), other.take().rows()) == ([(20, 5, 3, "final")], [(20, 5, 2, "final")])


def test_estimates_below_are_no_answers_of_the_query() -> None:
    """They neither change with the prods of another query nor count in the accuracy of this one."""
    with ms.connect(local=True) as mill:
        mill.sql(STREAM)
        asked, other = (mill.sql(outer("estimate")).start(name=name) for name in ("asked", "other"))
        for start in range(0, 200, 10):
            mill.insert("s", [(start + at, 1, 1) for at in range(5)])
            if start < 180:
                asked.prod()
            mill.insert("s", [(start + at, 1, 1) for at in range(5, 10 if start % 20 else 7)])
        mill.insert("s", [(200, 1, 1), (204, 1, 1)])
        first = [prod() or query.take().rows()[-1][2] for query in (asked, other) for prod in (query.prod,)]
        assert first[0] != first[1]  # without a history: twice the value, or what has passed makes of it
        accuracy = asked.progress().accuracy
        assert accuracy.all.count == accuracy.last.count * 2 == 18
