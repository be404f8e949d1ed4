"""Running aggregates: plans, and mistakes with their positions and hints."""

from __future__ import annotations

import pytest

from millstream.algebra.frame import Frame
from millstream.errors import MillstreamError
from millstream.logical.nodes.over import Over
from millstream.optimizer import optimize
from tests.logical.sample import bind, sample_catalog


def overs(query: str) -> list[Over]:
    return [node for node in bind(query).walk() if isinstance(node, Over)]


def only(query: str) -> Over:
    (found,) = overs(query)
    return found


@pytest.mark.parametrize(
    ("written", "frame"),
    [
        ("", Frame("RANGE")),
        ("UNBOUNDED PRECEDING", Frame("RANGE")),
        ("ROWS UNBOUNDED PRECEDING", Frame("ROWS")),
        ("ROWS 3 PRECEDING", Frame("ROWS", 3)),
        ("ROWS BETWEEN 3 PRECEDING AND CURRENT ROW", Frame("ROWS", 3)),
        ("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", Frame("ROWS")),
        ("ROWS CURRENT ROW", Frame("ROWS", 0)),
        ("ORDER BY ts RANGE 5 PRECEDING", Frame("RANGE", 5)),
        ("ORDER BY ts ASC RANGE 5 SECONDS PRECEDING", Frame("RANGE", 5)),
        ("RANGE INTERVAL '1' MINUTE PRECEDING", Frame("RANGE", 60)),
        ("RANGE BETWEEN 5 PRECEDING AND CURRENT ROW", Frame("RANGE", 5)),
        ("ROWS 49 PRECEDING SLIDE 10", Frame("ROWS", 49, 10)),
        ("RANGE 9 PRECEDING SLIDE 3", Frame("RANGE", 9, 3)),
        ("RANGE 9 PRECEDING ACTIVE EXPIRATION", Frame("RANGE", 9, active=True)),
    ],
)
def test_frames(written: str, frame: Frame) -> None:
    assert only(f"SELECT SUM(v) OVER ({written}) FROM a").frame == frame


def test_a_window_of_timestamps_is_in_microseconds() -> None:
    assert only("SELECT SUM(price) OVER (RANGE 5 PRECEDING) FROM bids").frame.size == 5_000_000


def test_the_alias_may_precede_the_window() -> None:
    before, after = "SUM(v) AS s OVER (ROWS 2 PRECEDING)", "SUM(v) OVER (ROWS 2 PRECEDING) AS s"
    assert bind(f"SELECT k, {before} FROM a") == bind(f"SELECT k, {after} FROM a")


def test_calls_with_one_window_share_a_node() -> None:
    window = "(PARTITION BY k ROWS 2 PRECEDING)"
    node = only(f"SELECT SUM(v) OVER {window}, AVG(v + 1) OVER {window} + SUM(v) OVER {window} FROM a")
    assert [str(call) for call in node.calls] == ["SUM(v) AS sum_v", "AVG(argument_1) AS avg_argument_1"]


def test_other_windows_are_chained() -> None:
    found = overs("SELECT SUM(v) OVER (ROWS 2 PRECEDING), SUM(v) OVER (PARTITION BY k ROWS 2 PRECEDING) FROM a")
    assert [node.partition for node in found] == [(), ("k",)]
    assert found[1].schema.names[-2:] == ("sum_v", "sum_v_1")


def test_functions_of_the_place_have_frames_of_their_own() -> None:
    by = "(PARTITION BY k RANGE 5 PRECEDING)"
    found = overs(f"SELECT ROW_NUMBER() OVER {by}, LAG(v, 3) OVER {by}, LAG(v) OVER {by} FROM a")
    assert [node.frame for node in found] == [Frame("ROWS"), Frame("ROWS", 3), Frame("ROWS", 1)]


def test_partitions_may_be_computed() -> None:
    assert only("SELECT SUM(v) OVER (PARTITION BY k % 2, note, k % 2) FROM a").partition == ("partition_1", "note")


def test_only_conditions_on_the_partition_go_below() -> None:
    inner = "SELECT k, v, SUM(v) OVER (PARTITION BY k) AS s FROM a"
    plan = optimize(bind(f"SELECT v FROM ({inner}) x WHERE k = 1 AND v = 2 AND s > 3"), sample_catalog())
    assert [node.describe() for node in plan.walk() if node.stem in ("select", "over")] == [
        "Select (k = 1)",
        "Over PARTITION BY k RANGE UNBOUNDED PRECEDING SUM(v) AS sum_v",
        "Select ((sum_v > 3) AND (v = 2))",
    ]


ERRORS = [
    ("SELECT SUM(v) OVER (ROWS 2 PRECEDING) FROM a GROUP BY k", "M3050", 55, "GROUP BY", "subquery"),
    ("SELECT SUM(v) OVER (ROWS 2 PRECEDING), SUM(v) FROM a [RANGE 5]", "M3050", 40, "without OVER", "subquery"),
    ("SELECT SUM(v) OVER (ROWS 2 PRECEDING) FROM a HAVING k > 1", "M3050", 55, "HAVING", "subquery"),
    ("SELECT SUM(v) OVER (RANGE 5 PRECEDING SLIDE 2 ACTIVE EXPIRATION) FROM a", "M3051", 15, "together", "choose one"),
    ("SELECT SUM(v) OVER (ROWS 5 PRECEDING ACTIVE EXPIRATION) FROM a", "M3051", 15, "RANGE of time", "RANGE 10"),
    ("SELECT SUM(v) OVER (UNBOUNDED PRECEDING ACTIVE EXPIRATION) FROM a", "M3051", 15, "RANGE of time", "RANGE 10"),
    ("SELECT LAG(v) OVER (RANGE 5 PRECEDING SLIDE 2) FROM a", "M3051", 15, "each tuple", "subquery"),
    ("SELECT SUM(v) OVER (ORDER BY v ROWS 2 PRECEDING) FROM a", "M3052", 30, "order of time", "ORDER BY ts"),
    ("SELECT SUM(v) OVER (ORDER BY at) FROM loose", "M3052", 30, "order of time", "leave it out"),
    (
        "SELECT SUM(v) OVER (ROWS 2 PRECEDING SLIDE 2), SUM(v) OVER (ROWS 1 PRECEDING) FROM a",
        "M3053",
        48,
        "another window",
        "subquery",
    ),
    ("SELECT ABS(v) OVER (ROWS 2 PRECEDING) FROM a", "M3054", 8, "not an aggregate", "leave it out"),
    ("SELECT v FROM a WHERE SUM(v) OVER (ROWS 2 PRECEDING) > 1", "M3054", 23, "not allowed in WHERE", "subquery"),
    ("SELECT SUM(SUM(v) OVER (ROWS 1 PRECEDING)) OVER (ROWS 2 PRECEDING) FROM a", "M3018", 8, "inside", "subquery"),
    ("SELECT SUM(note) OVER (ROWS 2 PRECEDING) FROM a", "M2006", 8, "needs a number", ""),
    ("SELECT SUM(v) OVER (PARTITION BY 1) FROM a", "M2017", 34, "needs a column", ""),
    ("SELECT SUM(v) OVER (PARTITION BY x) FROM a", "M2001", 34, "unknown column", ""),
    ("SELECT SUM(v) OVER (ROWS 2 PRECEDING SLIDE 0) FROM a", "M2024", 15, "positive", "rows"),
    ("SELECT SUM(v) OVER (RANGE 5 MINUTES PRECEDING SLIDE 2) FROM a", "M2025", 53, "mix units", "MINUTES"),
    ("SELECT ROW_NUMBER() FILTER (WHERE k = 1) OVER (PARTITION BY k) FROM a", "M2009", 8, "FILTER", "leave it out"),
    (
        "SELECT SUM(v) OVER (RANGE 5 PRECEDING ACTIVE EXPIRATION ACTIVE EXPIRATION) FROM a",
        "M1007",
        57,
        "appears twice",
        "",
    ),
    ("SELECT SUM(v) OVER (RANGE 5 PRECEDING PARTITION BY k) FROM a", "M1001", 39, "not in its place", "the frame"),
    ("SELECT SUM(v) OVER w FROM a", "M1001", 20, "a window in parentheses", "has no name"),
    ("SELECT SUM(v) OVER FROM a", "M1001", 20, "a window in parentheses", "OVER (PARTITION BY"),
    ("SELECT ROW_NUMBER() FROM a", "M3028", 8, "needs OVER", "OVER (PARTITION BY k"),
]


@pytest.mark.parametrize(("query", "code", "column", "message", "hint"), ERRORS, ids=[case[0] for case in ERRORS])
def test_mistakes(query: str, code: str, column: int | None, message: str, hint: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        bind(query)
    error = caught.value
    assert error.code == code and message in error.message and hint in error.hint
    assert column is None or error.column == column
