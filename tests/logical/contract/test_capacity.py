"""Capacity: residence times from periods, windows and watermarks; bounds on rows from rates."""

from __future__ import annotations

import pytest

from millstream.logical.contract.accordance import accordance
from millstream.logical.contract.capacity import Capacity, capacity
from millstream.logical.contract.offers import Declarations
from millstream.optimizer import optimize
from tests.logical.sample import bind, catalog_of

STREAMS = (
    "CREATE STREAM a (k BIGINT, v BIGINT, f BOOLEAN, ts TIMESTAMP) {};"
    "CREATE STREAM b (k BIGINT, v BIGINT, f BOOLEAN, ts TIMESTAMP) {};"
)
MINUTE = "PUNCTUATED ON (k #) EVERY 1 MINUTE"
RISING = "PUNCTUATED ON (ts +) EVERY 1 SECOND"
JOIN = "SELECT a.v FROM a JOIN b ON a.k = b.k"
WATERMARK = "WATERMARK FOR ts AS ts - INTERVAL '5 seconds'"


def of(query: str, first: str, second: str = "") -> Capacity:
    catalog = catalog_of(STREAMS.format(first, second))
    declarations = Declarations.of(catalog)
    root = accordance(optimize(bind(query, catalog), catalog, paned=False), declarations)
    assert root.refused is None
    return capacity(root, declarations)


RATES = {"a": 10.0, "b": 2.0}
CASES = {
    # each side waits for the other side's punctuation
    (JOIN, MINUTE, "PUNCTUATED ON (k #) EVERY 30 SECONDS"): (10 * 30 + 2 * 60, 0),
    (JOIN, MINUTE, "PUNCTUATED ON (k #)"): (None, 0),
    # windows: length and the lag of the other side's time
    ("SELECT a.v FROM a [RANGE 20 SECONDS] JOIN b [RANGE 10 SECONDS] ON a.k = b.k", WATERMARK, "ORDER BY ts"): (
        10 * 20 + 2 * 15,
        0,
    ),
    ("SELECT a.v FROM a [ROWS 7] JOIN b [ROWS 3] ON a.k = b.k", "ORDER BY ts", "ORDER BY ts"): (10, 0),
    # groups
    ("SELECT k, COUNT(*) AS n FROM a GROUP BY k", MINUTE, ""): (600, 60),
    ("SELECT k, COUNT(*) AS n FROM a [RANGE 10 SECONDS] GROUP BY k", WATERMARK, ""): (10 * 25, 25),
    ("SELECT k, COUNT(*) AS n FROM a [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k", WATERMARK, ""): (2 * 10 * 20, 20),
    ("SELECT DISTINCT k FROM a", MINUTE, ""): (600, 0),
    ("SELECT k, v FROM a WHERE v > 1", "", ""): (0, 0),
    # frames are as long as they are, whatever punctuation closes
    ("SELECT SUM(v) OVER (RANGE 100 SECONDS PRECEDING) AS n FROM a", f"ORDER BY ts {RISING} {MINUTE}", ""): (1020, 1),
    ("SELECT SUM(v) OVER (ROWS 3 PRECEDING) AS n FROM a", f"ORDER BY ts {RISING} {MINUTE}", ""): (None, 1),
    # groups of few values are emitted when the stream ends
    ("SELECT f, COUNT(*) AS n FROM a GROUP BY f", "ORDER BY ts", ""): (3, None),
    # a group waits for the punctuation that the groups below pass on, later by the time that they wait
    (
        "SELECT n, k, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) x GROUP BY n, k",
        MINUTE,
        "",
    ): (600 + 10 * 120, 180),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: " / ".join(case))
def test_bounds(case: tuple[str, str, str]) -> None:
    rows, delay = CASES[case]
    found = of(*case)
    assert found.rows(RATES) == rows
    assert found.delay == delay


def test_the_faster_of_two_promises_counts() -> None:
    query = "SELECT a.v FROM a [RANGE 10 SECONDS] JOIN b [RANGE 10 SECONDS] ON a.k = b.k"
    timed = "PUNCTUATED ON (ts +) EVERY 1 SECOND PUNCTUATED ON (k #) EVERY {} SECONDS"
    slow, fast = (f"ORDER BY ts {timed.format(seconds)}" for seconds in (600, 3))
    assert of(query, slow, slow).rows(RATES) == 12 * 11
    assert of(query, fast, fast).rows(RATES) == 12 * 3


def test_behind_a_join_the_rate_of_its_results_is_measured() -> None:
    found = of(f"SELECT k, COUNT(*) AS n FROM ({JOIN.replace('a.v', 'a.k')}) x GROUP BY k", MINUTE, MINUTE)
    assert found.rows(RATES) is None
    assert [each.seconds for each in found.residences] == [60, 60, 120]
    assert found.rows(RATES | {"results of WindowJoin": 5.0}) == 60 * 12 + 120 * 5


def test_joins_of_a_kind_are_measured_together() -> None:
    """Each of both sides of the last join may hold all results."""
    sides = [f"({JOIN.replace('a.v', 'a.k, b.v AS w')}) {name}" for name in "xy"]
    found = of(f"SELECT x.w FROM {sides[0]} THRIFTY JOIN {sides[1]} ON x.k = y.k", MINUTE, MINUTE)
    assert found.rows(RATES | {"results of WindowJoin": 5.0}) == 2 * 60 * 12 + 2 * 120 * 5
