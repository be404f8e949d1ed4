"""Running sums that do not fit their type: an error where a row uses them, never a wrapped value."""

from __future__ import annotations

import pytest

from millstream.control.mill import LocalMill
from millstream.errors import OperatorError

MOST = (1 << 63) - 1
DELTA = (
    "CREATE WINDOW AGGREGATE total(n BIGINT) : BIGINT { TABLE st(s BIGINT); TABLE inwindow(w BIGINT); "
    "INITIALIZE: { INSERT INTO st VALUES (n); INSERT INTO RETURN SELECT s FROM st; } "
    "ITERATE: { UPDATE st SET s = s + n; INSERT INTO RETURN SELECT s FROM st; } "
    "EXPIRE: { UPDATE st SET s = s - oldest().w; } };"
)
FRAMES = (
    "ROWS 1 PRECEDING",
    "RANGE 1 PRECEDING",
    "UNBOUNDED PRECEDING",
    "ROWS 3 PRECEDING SLIDE 2",
    "RANGE 1 PRECEDING SLIDE 2",
    "RANGE 1 PRECEDING ACTIVE EXPIRATION",
)


def mill_with(item: str, condition: str = "") -> LocalMill:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts PUNCTUATED ON (ts +)")
    if "total(" in item:
        mill.execute(DELTA)
    mill.add_query("q", f"SELECT ts, x FROM (SELECT ts, {item} AS x FROM s) AS y {condition}")
    mill.insert("s", [(1, 1, MOST), (2, 1, MOST - 1), (3, 1, -5)])
    mill.punctuate("s", "[< 100, *, *]")
    return mill


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("call", ["SUM(v)", "SUM(DISTINCT v)", "SUM(v) FILTER (WHERE v > 0)"])
@pytest.mark.parametrize("by", ["", "PARTITION BY k "])
def test_a_sum_that_does_not_fit_is_an_error(call: str, by: str, frame: str) -> None:
    mill = mill_with(f"{call} OVER ({by}{frame})")
    with pytest.raises(OperatorError, match="does not fit BIGINT"):
        mill.batch()
        mill.take_rows("q")


@pytest.mark.parametrize("frame", ["ROWS 1 PRECEDING", "RANGE 1 PRECEDING"])
def test_a_body_that_runs_on_columns_is_checked_too(frame: str) -> None:
    mill = mill_with(f"total(v) OVER ({frame})")
    with pytest.raises(OperatorError, match="does not fit BIGINT"):
        mill.batch()
        mill.take_rows("q")


def test_a_sum_that_no_row_uses_is_no_error() -> None:
    mill = mill_with("SUM(v) OVER (ROWS 1 PRECEDING)", "WHERE ts <> 2")
    mill.batch()
    assert mill.take_rows("q").rows() == [(1, MOST), (3, MOST - 6)]
