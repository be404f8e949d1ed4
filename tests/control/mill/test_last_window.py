"""The last window of the year 9999 ends after the last TIMESTAMP: an error only where its end is used."""

from __future__ import annotations

from datetime import datetime

import pytest

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import OperatorError

STREAM = "CREATE STREAM s (k BIGINT, ts TIMESTAMP) ORDER BY ts"
ROWS = [(1, datetime(9999, 12, 30, 12)), (2, datetime(9999, 12, 31, 12))]


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize(
    ("window", "counts"),
    [("RANGE 1 DAY", [(1, 1), (2, 1)]), ("RANGE 2 DAYS SLIDE 1 DAY", [(1, 1), (1, 1), (2, 1), (2, 1)])],
)
def test_an_end_that_is_not_used(window: str, counts: list[tuple[int, int]], shards: int) -> None:
    mill = LocalMill(Options(shards=shards))
    mill.execute(f"{STREAM}; CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [{window}] GROUP BY k")
    mill.insert("s", ROWS)
    mill.punctuate("s", "[*, *]")
    mill.batch()
    mill.sync()
    assert sorted(mill.take_rows("q").rows()) == counts


def test_an_end_that_is_selected() -> None:
    mill = LocalMill()
    mill.execute(f"{STREAM}; CREATE QUERY q AS SELECT k, window_end FROM s [RANGE 1 DAY] GROUP BY k, window_end")
    mill.insert("s", ROWS)
    with pytest.raises(OperatorError, match="the end of a window is out of range for TIMESTAMP"):
        mill.punctuate("s", "[*, *]")
        mill.batch()
        mill.sync()
