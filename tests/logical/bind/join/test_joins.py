"""FROM with several entries: keys, windows, tables, sequences."""

from __future__ import annotations

import pytest

from millstream.algebra.window import UNBOUNDED, Window
from millstream.errors import MillstreamError
from millstream.logical.explain import explain
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.sequence import Sequence
from millstream.logical.nodes.table_join import TableJoin
from millstream.logical.nodes.window_join import WindowJoin
from tests.logical.sample import bind


def joins(text: str) -> list[WindowJoin]:
    return [node for node in bind(text).walk() if isinstance(node, WindowJoin)]


def join(text: str) -> WindowJoin:
    (found,) = joins(text)
    return found


def test_comma_and_join_mean_the_same() -> None:
    texts = (
        "SELECT a.v FROM a, b WHERE a.k = b.k AND a.v < b.v",
        "SELECT a.v FROM a JOIN b ON a.k = b.k AND a.v < b.v",
        "SELECT a.v FROM a INNER JOIN b ON a.k = b.k WHERE a.v < b.v",
        "SELECT a.v FROM a CROSS JOIN b WHERE a.v < b.v AND b.k = a.k",
        "SELECT a.v FROM a JOIN b USING (k) WHERE a.v < b.v",
    )
    assert len({bind(text) for text in texts}) == 1
    made = join(texts[0])
    assert (made.keys, str(made.residual)) == ((("k", "k"),), "(a.v < b.v)")
    assert (made.left_prefix, made.right_prefix, made.left_window, made.right_window) == (
        "a",
        "b",
        UNBOUNDED,
        UNBOUNDED,
    )


def test_windows_of_a_join() -> None:
    made = join("SELECT x.price FROM bids x [RANGE 10 SECONDS], auctions [RANGE 5 SECONDS] y WHERE x.auction = y.id")
    assert (made.left_window, made.right_window) == (Window(range=10_000_000), Window(range=5_000_000))
    made = join("SELECT a.v FROM a [ROWS 3], b [NOW] WHERE a.k = b.k")
    assert (made.left_window, made.right_window) == (Window(rows=3), Window(range=0))
    made = join("SELECT a.v FROM a [ROWS 0], b [UNBOUNDED] WHERE a.k = b.k")
    assert (made.left_window, made.right_window) == (Window(rows=0), UNBOUNDED)


def test_a_stream_beside_a_preceding_window_only_probes() -> None:
    made = join("SELECT a.v FROM a AS x OVER (ROWS 1 PRECEDING), a")
    assert (made.left_window, made.right_window) == (Window(rows=1), Window(rows=0))


def test_self_join_by_alias() -> None:
    made = join("SELECT x.v, y.v FROM a x, a y WHERE x.k = y.k")
    assert made.left == made.right and (made.left_prefix, made.right_prefix) == ("x", "y")


def test_conditions_on_one_side_stay_above() -> None:
    plan = bind("SELECT a.v FROM a JOIN b ON a.k = b.k AND a.v > 1 WHERE b.v > 2 AND 1 = 1")
    assert plan.inputs[0].describe() == "Select (((a.v > 1) AND (b.v > 2)) AND (1 = 1))"


def test_keys_of_different_types_stay_conditions() -> None:
    made = join("SELECT x.seller FROM auctions x, bids y WHERE x.category = y.price AND x.id + 1 = y.bidder")
    assert made.keys == ()
    assert str(made.residual) == "((CAST(x.category AS DOUBLE) = y.price) AND ((x.id + 1) = y.bidder))"


def test_integers_of_different_widths_are_keys() -> None:
    text = "SELECT y.auction, x.category FROM auctions x, bids y WHERE x.category = y.auction"
    assert join(text).keys == (("category", "auction"),) and join(text).residual is None
    made = bind(text)
    assert isinstance(made, Project) and str(made.items[0][1]) == "y.auction"  # it is not of the other's type
    narrowed = join("SELECT x.seller FROM auctions x, bids y WHERE x.category = CAST(y.auction AS INT)")
    assert narrowed.keys == ()


def test_equal_expressions_that_rise_with_time_are_keys() -> None:
    made = join("SELECT a.v FROM a, b WHERE a.k = b.k AND a.ts / 10 = b.ts / 10")
    assert made.keys == (("k", "k"), ("key_1", "key_1")) and made.residual is None
    computed = [str(side.items[-1][1]) for side in made.inputs if isinstance(side, Project)]
    assert computed == ["(CAST(ts AS DOUBLE) / 10.0)"] * 2
    made = join("SELECT a.v FROM a, b WHERE b.ts + 2 = a.ts")
    assert made.keys == (("ts", "key_1"),) and made.left_window == made.right_window == Window()
    assert join("SELECT a.v FROM a, b WHERE a.v + 1 = b.v + 1").keys == ()


# --- interval joins ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "left", "right", "residual"),
    [
        ("a.ts BETWEEN b.ts - 5 AND b.ts + 3", 5, 3, None),
        ("a.ts >= b.ts - 5 AND b.ts >= a.ts - 3", 5, 3, None),
        ("b.ts <= a.ts + 5 AND a.ts - 3 <= b.ts", 5, 3, None),
        ("b.ts BETWEEN a.ts AND a.ts + 10", 10, 0, None),
        ("a.ts > b.ts - 5 AND a.ts < b.ts + 3", 4, 2, None),
        ("a.ts BETWEEN b.ts + 2 AND b.ts + 5", 0, 5, "(a.ts >= (b.ts + 2))"),
        ("a.ts BETWEEN b.ts - 5 AND b.ts - 2", 5, 0, "(a.ts <= (b.ts - 2))"),
        ("a.ts BETWEEN b.ts - INTERVAL '1' MINUTE AND b.ts", 60, 0, None),
        ("a.ts >= b.ts - 5", None, None, "(a.ts >= (b.ts - 5))"),
        ("a.ts BETWEEN b.v - 5 AND b.v + 5", None, None, "((a.ts >= (b.v - 5)) AND (a.ts <= (b.v + 5)))"),
        ("a.ts BETWEEN b.ts - 9 AND b.ts + 9 AND a.ts >= b.ts - 2", 2, 9, None),
    ],
)
def test_bounds_on_time_are_windows(condition: str, left: int | None, right: int | None, residual: str | None) -> None:
    made = join(f"SELECT a.v FROM a, b WHERE a.k = b.k AND {condition}")
    assert (made.left_window, made.right_window) == (Window(range=left), Window(range=right))
    assert (None if made.residual is None else str(made.residual)) == residual


def test_a_written_window_is_kept_and_the_bound_checked() -> None:
    made = join("SELECT a.v FROM a [RANGE 20], b WHERE a.ts BETWEEN b.ts - 5 AND b.ts + 3")
    assert (made.left_window, made.right_window) == (Window(range=20), Window(range=3))
    assert str(made.residual) == "(a.ts >= (b.ts - 5))"
    tighter = join("SELECT a.v FROM a [RANGE 2], b WHERE a.ts BETWEEN b.ts - 5 AND b.ts + 3")
    assert tighter.left_window == Window(range=2) and tighter.residual is None


def test_strict_bounds_on_timestamps_move_by_a_microsecond() -> None:
    text = "SELECT x.id FROM auctions x, bids y WHERE y.ts > x.ts - INTERVAL '1' SECOND AND y.ts < x.ts"
    made = join(text)
    # y.ts < x.ts asks for more than the window [RANGE 0] of x can say
    assert (made.left_window, made.right_window) == (Window(range=0), Window(range=999_999))
    assert str(made.residual) == "(y.ts < x.ts)"


# --- more than two ----------------------------------------------------------------------------------------------------


def test_joins_are_left_deep_and_conditions_go_low() -> None:
    text = "SELECT a.v FROM a, b, c WHERE c.k = b.k AND a.k = b.k AND a.v < b.v AND a.v + b.v < c.v"
    first, second = joins(text)
    assert (first.keys, str(first.residual)) == ((("k", "k"),), "(a.v < b.v)")
    # b.k is a.k, on which the first join emits punctuation
    assert (second.keys, str(second.residual)) == ((("a.k", "k"),), "((a.v + b.v) < c.v)")
    assert (second.left_prefix, second.right_prefix) == (None, "c")


def test_windows_of_three_streams_hold_for_every_part() -> None:
    _, second = joins("SELECT a.v FROM a [RANGE 5], b [RANGE 6], c [RANGE 7] WHERE a.k = b.k AND b.k = c.k")
    assert (second.left_window, second.right_window) == (Window(range=6), Window(range=7))
    assert str(second.residual) == "((a.ts >= (c.ts - 5)) AND (b.ts >= (c.ts - 6)))"
    _, open_ended = joins("SELECT a.v FROM a [RANGE 5], b, c WHERE a.k = b.k AND b.k = c.k")
    assert open_ended.left_window == UNBOUNDED and str(open_ended.residual) == "(a.ts >= (c.ts - 5))"


def test_three_streams_without_a_time_column_carry_their_timestamp() -> None:
    text = "SELECT * FROM entered x [RANGE 5], entered y, entered z WHERE x.k = y.k AND y.k = z.k"
    plan = bind(text)
    assert plan.schema.names == ("k", "v", "k_1", "v_1", "k_2", "v_2")
    assert "x.__time >= (z.__time - INTERVAL '5' SECOND)" in explain(plan)


# --- tables -----------------------------------------------------------------------------------------------------------


def tables(text: str) -> list[TableJoin]:
    return [node for node in bind(text).walk() if isinstance(node, TableJoin)]


@pytest.mark.parametrize("sources", ["a, sites", "sites, a", "a JOIN sites ON TRUE", "sites CROSS JOIN a"])
def test_a_table_on_either_side(sources: str) -> None:
    (made,) = tables(f"SELECT city FROM {sources} WHERE a.k = sites.k AND a.note <> city")
    assert (made.table, made.keys, str(made.residual)) == ("sites", (("k", "k"),), "(a.note <> sites.city)")
    assert (made.stream_prefix, made.table_prefix, made.outer) == ("a", "sites", False)


def test_left_join_with_a_table() -> None:
    plan = bind("SELECT * FROM a LEFT JOIN sites ON a.k = sites.k AND open WHERE city IS NULL")
    (made,) = tables("SELECT * FROM a LEFT JOIN sites ON a.k = sites.k AND open WHERE city IS NULL")
    assert made.outer and made.keys == (("k", "k"),) and str(made.residual) == "sites.open"
    assert plan.inputs[0].describe() == "Select (sites.city IS NULL)"


def test_tables_and_streams_together() -> None:
    text = "SELECT a.v FROM a, sites x, b, sites y WHERE a.k = x.k AND a.k = b.k AND b.v = y.k"
    assert [node.describe() for node in bind(text).walk()][1:-1] == [
        "TableJoin sites ON a.k = x.k",
        "Scan b",
        "WindowJoin [UNBOUNDED], b [UNBOUNDED] ON a.k = b.k on arrival",
        "TableJoin sites ON b.v = y.k",
    ]


def test_aggregates_over_joins() -> None:
    plan = bind("SELECT b.k, COUNT(*) FROM a, b, sites WHERE a.k = b.k AND sites.k = b.k GROUP BY b.k")
    assert plan.inputs[0].describe() == "WindowAggregate BY a.k COUNT(*) AS count"
    windowed = bind("SELECT COUNT(*) FROM a [RANGE 5], b WHERE a.k = b.k WINDOW [RANGE 10 SLIDE 5]")
    assert windowed.inputs[0].describe() == "WindowAggregate [RANGE 10 SLIDE 5] COUNT(*) AS count"
    on_table = bind("SELECT city, SUM(v) FROM a [RANGE 10] JOIN sites USING (k) GROUP BY city")
    assert on_table.inputs[0].describe() == "WindowAggregate [RANGE 10 SLIDE 10] BY sites.city SUM(a.v) AS sum_a_v"


def test_using_is_one_column() -> None:
    assert bind("SELECT * FROM a JOIN sites USING (k)").schema.names == ("ts", "k", "v", "note", "city", "open")
    assert bind("SELECT k FROM a JOIN sites USING (k)").schema.names == ("k",)


# --- sequences --------------------------------------------------------------------------------------------------------


def test_sequences() -> None:
    text = (
        "SELECT x.v, y.v FROM b y, a x, sites WHERE SEQ(x, y) MODE RECENT AND x.k = y.k AND x.v > 1 AND y.k = sites.k"
    )
    made = next(node for node in bind(text).walk() if isinstance(node, Sequence))
    assert (made.mode, made.keys, str(made.residual)) == ("RECENT", (("k", "k"),), "(x.v > 1)")
    assert (made.first_prefix, made.second_prefix) == ("x", "y")
    chronicle = "SELECT x.v FROM a AS x OVER (UNLIMITED PRECEDING) KEY JOIN, b AS y WHERE SEQ(x, y) MODE CHRONICLE"
    assert "Sequence CHRONICLE" in explain(bind(chronicle))


ERRORS = [
    ("SELECT a.v FROM sites LEFT JOIN a ON a.k = sites.k", "would keep rows of a table", "Begin with the stream"),
    ("SELECT a.v FROM a FULL JOIN sites ON a.k = sites.k", "would keep rows of a table", "LEFT JOIN the table"),
    ("SELECT a.v FROM a RIGHT JOIN b USING (k)", "USING of a RIGHT JOIN is not available yet", "COALESCE"),
    ("SELECT a.v FROM a, b FULL JOIN c ON a.k = c.k", "a FULL JOIN after a comma", "JOIN … ON"),
    ("SELECT a.v FROM a LEFT JOIN b ON a.k = b.k, c [ROWS 2]", "a ROWS window after an outer join", "RANGE"),
    (
        "SELECT a.v FROM a LEFT JOIN b ON TRUE WHERE SEQ(a, b) MODE RECENT",
        "SEQ cannot be combined with a LEFT JOIN",
        "JOIN",
    ),
    ("SELECT a.v FROM a [RANGE 5 SLIDE 2], b", "SLIDE needs an aggregate", ""),
    ("SELECT a.v FROM a [RANGE 5 ON v], b", "a window of a join is on time, not on 'v'", "'ts'"),
    ("SELECT a.v FROM TUMBLE(TABLE a, DESCRIPTOR(ts), 5), b", "TUMBLE in a join is not available yet", ""),
    ("SELECT a.v FROM a [RANGE 5], bids b WHERE a.k = b.auction", "count time in different units", "both BIGINT"),
    ("SELECT a.v FROM a [ROWS -1], b", "expected a number of rows", "such as [ROWS 10]"),
    ("SELECT a.v FROM a [RANGE -1], b", "RANGE must be positive", "10 SECONDS"),
    ("SELECT a.v FROM a [RANGE 1 ROWS 1], b", "either RANGE or ROWS", "[ROWS 10]"),
    ("SELECT a.v FROM a, sites [ROWS 1]", "is a table and has no windows", "Leave the bracket out"),
    ("SELECT a.v FROM a OUTER JOIN b ON a.k = b.k", "LEFT, RIGHT or FULL before OUTER JOIN", "LEFT JOIN"),
    ("SELECT a.v FROM a LEFT SEMI JOIN b ON a.k = b.k", "LEFT SEMI JOIN: not available", "SELECT DISTINCT"),
    ("SELECT a.v FROM a LEFT b ON a.k = b.k", "expected JOIN", "such as LEFT JOIN"),
    ("SELECT a.v FROM a JOIN b ON COUNT(*) > 1", "an aggregate, not allowed in ON", "subquery"),
    ("SELECT a.v FROM a JOIN b USING (kk)", "USING (kk): there is no such column in 'b'", "did you mean 'k'"),
    (
        "SELECT a.v FROM a [ROWS 5], b, c",
        "on 'a' needs a column that all streams are joined on",
        "put 'a' last in FROM",
    ),
    ("SELECT a.v FROM a, b [ROWS 5], c [ROWS 1] WHERE a.k = b.k AND b.v = c.v", "ROWS window on 'b'", "on one column"),
    ("SELECT a.v FROM a [ROWS 5], b LEFT JOIN c ON b.k = c.k WHERE a.k = b.k", "beside an outer join", "RANGE"),
    ("SELECT a.v FROM a [ROWS 0], b [ROWS 0] WHERE a.k = b.k", "'a' and 'b' keep no tuples", "one"),
    ("SELECT a.v FROM a [ROWS 0], b, c [ROWS 0] WHERE a.k = b.k AND b.k = c.k", "'a' and 'c' keep no tuples", "one"),
    ("SELECT a.v FROM a OVER (ROWS 1 PRECEDING), b, c WHERE a.k = b.k AND b.k = c.k", "there can be no result", "OVER"),
    ("SELECT x.v FROM loose [ROWS 2] x, loose y WHERE x.k = y.k", "ROWS window in a join of 'loose' with", "ORDER BY"),
    (
        "SELECT x.v FROM loose [ROWS 2] x, a, loose [ROWS 2] y WHERE x.k = y.k AND a.k = x.k",
        "of 'loose' with itself",
        "RANGE",
    ),
    ("SELECT x.v FROM loose x LEFT JOIN (SELECT * FROM loose) y [ROWS 2] ON x.k = y.k", "of 'loose' with itself", ""),
    ("SELECT a.v FROM a JOIN b USING (auction)", "USING (auction): there is no such column in 'b'", ""),
    ("SELECT a.v FROM a JOIN b ON a.k = c.k JOIN c ON TRUE", "unknown alias 'c'", ""),
    ("SELECT x.current_time FROM entered x, entered y", "current_time of one side of a join", "subquery"),
    ("SELECT a.v FROM a, b WHERE SEQ(a, c) MODE RECENT", "SEQ names the two streams of FROM, not 'c'", "a, b"),
    ("SELECT a.v FROM a, b WHERE SEQ(a, a) MODE RECENT", "SEQ names the two streams", ""),
    ("SELECT a.v FROM a, b, c WHERE SEQ(a, b) MODE RECENT", "SEQ takes the two streams of FROM", ""),
    ("SELECT a.v FROM a, b WHERE SEQ(a, b) MODE RECENT OR a.k = 1", "SEQ is allowed only in WHERE", "AND"),
    ("SELECT a.v FROM a [RANGE 5], b WHERE SEQ(a, b) MODE RECENT", "a window on a stream of SEQ", ""),
    ("SELECT a.v FROM a, b WHERE SEQ(a, b) MODE RECENT AND SEQ(b, a) MODE RECENT", "more than one SEQ", ""),
]


@pytest.mark.parametrize(("text", "message", "hint"), ERRORS, ids=[case[0] for case in ERRORS])
def test_errors(text: str, message: str, hint: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        bind(text)
    error = caught.value
    assert message in error.message and hint in error.hint, str(error)
    assert error.line == 1 and error.column is not None
