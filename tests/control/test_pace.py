"""WITH PACE in running queries: feedback to the operators before it, what is reported, mistakes."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.observe.counted import counted
from millstream.control.observe.progress import progress_of
from millstream.errors import MillstreamError

STREAMS = """
CREATE STREAM a (ts BIGINT, v BIGINT) ORDER BY ts;
CREATE STREAM b (ts BIGINT, v BIGINT) ORDER BY ts PUNCTUATED ON (ts +);
"""
UNION = "SELECT ts, v FROM a UNION ALL SELECT ts, v FROM b WHERE v > 0 WITH PACE ON MAX(ts) 5"


def mill_with(query: str) -> LocalMill:
    mill = LocalMill(Options())
    mill.execute(STREAMS)
    mill.add_query("q", query)
    return mill


def fed_late(query: str) -> LocalMill:
    mill = mill_with(query)
    mill.insert("a", [(20, 1)])
    mill.batch()
    mill.insert("b", [(3, 1)])
    mill.batch()
    mill.insert("b", [(4, 1), (5, 1), (16, 1)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(20, 1), (16, 1)]
    return mill


def test_the_operators_before_it_learn_what_it_drops() -> None:
    mill = fed_late(UNION)
    progress = progress_of(mill, "q")
    readings = {o.reading.kind: o.reading for o in progress.operators}
    assert readings["Select"].guards == ("[ts < 15]",)
    assert readings["Select"].disclaimed + sum(stream.skipped.rows for stream in progress.streams) == 2
    assert readings["Pace"].late == 1  # the first one, which it dropped itself
    mill.punctuate("b", "[< 30, *]")
    mill.batch()
    assert not any(o.reading.guards for o in progress_of(mill, "q").operators if o.reading.kind == "Select")


def test_feedback_can_be_switched_off() -> None:
    mill = fed_late(f"{UNION} FEEDBACK OFF")
    readings = {o.reading.kind: o.reading for o in progress_of(mill, "q").operators}
    assert readings["Select"].guards == () and readings["Pace"].late == 3


def test_a_query_beside_it_gets_all_rows() -> None:
    """The selection is shared: it omits only what both queries ignore."""
    mill = mill_with(UNION)
    mill.add_query("all_rows", "SELECT ts, v FROM b WHERE v > 0")
    mill.insert("a", [(20, 1)])
    mill.batch()
    for rows in ([(3, 1)], [(4, 1)]):
        mill.insert("b", rows)
        mill.batch()
    assert mill.take_rows("q").rows() == [(20, 1)]
    assert mill.take_rows("all_rows").rows() == [(3, 1), (4, 1)]


def test_dropped_rows_are_reported() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (seen BIGINT)")
        query = mill.sql("CREATE QUERY q AS SELECT seen FROM s WITH PACE ON MAX(seen) 5")
        mill.insert("s", [(20,), (3,), (15,), (14,)])
        assert query.take().rows() == [(20,), (15,)]
        assert "2 dropped by PACE" in str(query.progress())
        assert counted(mill.mill) == "2 dropped by PACE"
        assert "Pace ON MAX(seen) 5, in order of arrival" in mill.sql("EXPLAIN q")
        assert "contract: bounded" in mill.sql("EXPLAIN CONTRACT q")


@pytest.mark.parametrize(
    ("query", "code", "column"),
    [
        ("SELECT ts, v FROM a WITH PACE ON MAX(nothing) 5", "M2001", 38),
        ("SELECT v FROM a WITH PACE ON MAX(a.ts) 5", "M2001", 34),
        ("SELECT ts, v FROM a WITH PACE ON MAX(c.ts) 5", "M2011", 38),
        ("SELECT ts, v FROM a UNION ALL SELECT v, ts FROM b WITH PACE ON MAX(a.ts, b.ts) 5", "M3032", 74),
        ("SELECT ts, 'x' AS x FROM a WITH PACE ON MAX(x) 5", "M2026", 45),
        ("SELECT ts FROM a WITH PACE ON MAX(ts) -1", "M2024", 39),
        ("SELECT ts FROM a WITH PACE ON MIN(ts) 1", "M1001", 31),
        ("SELECT ts FROM a WITH PACE ON MAX(ts)", "M1001", 38),
        ("SELECT ts FROM a WITH PACE ON MAX(ts) 5 FEEDBACK MAYBE", "M1001", 50),
        ("SELECT ts FROM a WITH PACE ON MAX(ts) 5 ORDER BY ts", "M3001", 41),
    ],
)
def test_mistakes(query: str, code: str, column: int) -> None:
    with pytest.raises(MillstreamError) as caught:
        mill_with(query)
    assert (caught.value.code, caught.value.column) == (code, column)


def test_tables_have_no_pace() -> None:
    mill = LocalMill(Options())
    mill.execute("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)")
    with pytest.raises(MillstreamError, match="M3032"):
        mill.execute("SELECT k FROM t WITH PACE ON MAX(k) 5")
