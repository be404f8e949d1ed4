"""LEFT, RIGHT and FULL joins of streams: what they take, what they leave, and what EXPLAIN says of them."""

from __future__ import annotations

import pytest

from millstream.algebra.window import UNBOUNDED, Window
from millstream.logical.nodes.outer_join import OuterJoin
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from millstream.physical.plan.partitioning import partition_keys
from millstream.physical.plan.stages import parts
from tests.logical.sample import bind, catalog_of, explain_contract, sample_catalog


def outer_joins(text: str) -> list[OuterJoin]:
    return [node for node in bind(text).walk() if isinstance(node, OuterJoin)]


def outer_join(text: str) -> OuterJoin:
    (found,) = outer_joins(text)
    return found


def nodes(plan: Plan) -> list[str]:
    return [node.describe() for node in plan.walk()]


def pushed(text: str) -> list[str]:
    return nodes(optimize(bind(text), sample_catalog()))


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL", "LEFT OUTER"])
def test_on_stays_in_the_join_and_where_above(kind: str) -> None:
    text = f"SELECT a.v FROM a {kind} JOIN b ON a.k = b.k AND a.v > 1 AND b.v > 2 WHERE a.v < b.v AND b.k = 3"
    made = outer_join(text)
    assert made.kept == kind.split()[0] and made.keys == (("k", "k"),)
    assert str(made.residual) == "((a.v > 1) AND (b.v > 2))"
    assert (made.left_window, made.right_window) == (UNBOUNDED, UNBOUNDED)
    assert bind(text).inputs[0].describe() == "Select ((a.v < b.v) AND (b.k = 3))"
    assert not made.schema.ordered


def test_windows_and_bounds_on_time() -> None:
    made = outer_join("SELECT a.v FROM a [RANGE 5] FULL JOIN b [ROWS 3] ON a.k = b.k")
    assert (made.left_window, made.right_window, made.merges) == (Window(range=5), Window(rows=3), True)
    between = outer_join("SELECT a.v FROM a LEFT JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + 10")
    assert (between.left_window, between.right_window) == (Window(range=10), Window(range=0))
    assert between.residual is None and between.schema.ordered is False
    later = outer_join("SELECT a.v FROM a LEFT JOIN b ON a.k = b.k WHERE b.ts BETWEEN a.ts AND a.ts + 10")
    assert (later.left_window, later.right_window) == (UNBOUNDED, UNBOUNDED)


def test_keys_stay_two_columns() -> None:
    grouped = bind("SELECT b.k, COUNT(*) FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.k")
    assert grouped.inputs[0].describe() == "WindowAggregate BY b.k COUNT(*) AS count"


def test_several_from_left_to_right() -> None:
    text = "SELECT a.v FROM a [RANGE 5] LEFT JOIN b [RANGE 6] ON a.k = b.k LEFT JOIN c [RANGE 7] ON b.k = c.k"
    first, second = outer_joins(text)
    assert second.left == first and second.keys == (("b.k", "k"),)
    assert (second.left_window, second.right_window, second.merges) == (Window(range=6), Window(range=7), False)
    assert str(second.residual) == "((a.ts >= (c.ts - 5)) AND ((b.ts IS NULL) OR (b.ts >= (c.ts - 6))))"


def test_conditions_do_not_sink_below_a_join_that_pads_what_they_read() -> None:
    sources = "a JOIN b ON a.k = b.k AND b.v > 1 RIGHT JOIN c ON a.k = c.k JOIN bids d ON true AND a.v < b.v"
    text = f"SELECT a.v FROM {sources} WHERE b.v < 9"
    assert nodes(bind(text)) == [
        "Scan a",
        "Scan b",
        "WindowJoin a [UNBOUNDED], b [UNBOUNDED] ON a.k = b.k on arrival",
        "Select (b.v > 1)",
        "Scan c",
        "OuterJoin RIGHT [UNBOUNDED], c [UNBOUNDED] ON a.k = c.k on arrival",
        "Scan bids",
        "WindowJoin [UNBOUNDED], d [UNBOUNDED] on arrival",
        "Select ((true AND (a.v < b.v)) AND (b.v < 9))",
        "Project a.v AS v",
    ]


def test_a_stream_right_of_a_table_is_kept_too() -> None:
    assert bind("SELECT a.v, city FROM sites RIGHT JOIN a ON a.k = sites.k") == bind(
        "SELECT a.v, city FROM a LEFT JOIN sites ON a.k = sites.k"
    )


# --- the optimizer ----------------------------------------------------------------------------------------------------


def test_conditions_go_where_they_only_drop() -> None:
    on, where = "a.k = b.k AND a.v > 1 AND b.v > 2", "a.k < 3 AND b.k < 4 AND a.v < b.v"
    expected = {
        "LEFT": ("Select (k < 3)", "Select (v > 2)", " AND (a.v > 1)", "Select ((a.v < b.v) AND (b.k < 4))"),
        "RIGHT": ("Select (v > 1)", "Select (k < 4)", " AND (b.v > 2)", "Select ((a.k < 3) AND (a.v < b.v))"),
        "FULL": (
            "Project ts, k, v",
            "Project ts, k, v",
            " AND ((a.v > 1) AND (b.v > 2))",
            "Select (((a.k < 3) AND (a.v < b.v)) AND (b.k < 4))",
        ),
    }
    for kind, (left, right, inside, above) in expected.items():
        made = pushed(f"SELECT a.v FROM a {kind} JOIN b ON {on} WHERE {where}")
        place = made.index(f"OuterJoin {kind} a [UNBOUNDED], b [UNBOUNDED] ON a.k = b.k{inside} on arrival")
        assert above == made[place + 1]
        assert right == made[place - 1] and left in made[: place - 2], made


def test_a_window_of_rows_is_not_filtered_below() -> None:
    made = pushed("SELECT a.v FROM a [ROWS 2] LEFT JOIN b [ROWS 3] ON a.k = b.k AND b.v > 2 WHERE a.v > 1")
    assert "Select (a.v > 1)" in made and "Select (v > 2)" not in made


# --- shards and contracts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT a.v FROM a FULL JOIN b ON a.k = b.v", {"a": ("k",), "b": ("v",)}),
        ("SELECT a.k, COUNT(*) FROM a LEFT JOIN b ON a.k = b.v GROUP BY a.k", {"a": ("k",), "b": ("v",)}),
        ("SELECT b.v, COUNT(*) FROM a RIGHT JOIN b ON a.k = b.v GROUP BY b.v", {"a": ("k",), "b": ("v",)}),
        ("SELECT b.v, COUNT(*) FROM a LEFT JOIN b ON a.k = b.v GROUP BY b.v", None),
        ("SELECT a.k, COUNT(*) FROM a RIGHT JOIN b ON a.k = b.v GROUP BY a.k", None),
        ("SELECT a.k, COUNT(*) FROM a FULL JOIN b ON a.k = b.v GROUP BY a.k", None),
        ("SELECT a.v FROM a [ROWS 3] LEFT JOIN b ON a.k = b.v", None),
        ("SELECT a.v FROM a LEFT JOIN b [ROWS 3] ON a.k = b.v", {"a": ("k",), "b": ()}),
        ("SELECT a.v FROM a [ROWS 3] RIGHT JOIN b [RANGE 5] ON a.k = b.v", {"a": (), "b": ("v",)}),
        ("SELECT x.v FROM a x LEFT JOIN a y [ROWS 3] ON x.k = y.k", None),
        ("SELECT a.v FROM a FULL JOIN b [ROWS 3] ON a.k = b.v", None),
    ],
)
def test_keys_of_shards(text: str, keys: dict[str, tuple[str, ...]] | None) -> None:
    assert partition_keys(optimize(bind(text), sample_catalog())) == keys


def test_a_padded_key_is_hashed_again() -> None:
    made = parts("q", bind("SELECT b.v, COUNT(*) FROM a LEFT JOIN b ON a.k = b.v GROUP BY b.v"), 4)
    assert [part.stage for part in made] == [1, 0]
    assert made[1].keys == {"a": ("k",), "b": ("v",)} and made[1].key == ("b.v",)


CLOSED = """
CREATE STREAM a (k BIGINT, v BIGINT) PUNCTUATED ON (k #);
CREATE STREAM b (k BIGINT, w BIGINT) PUNCTUATED ON (k #);
"""


@pytest.mark.parametrize(
    ("kind", "by", "passed"),
    [("LEFT", "a.k", "(a.k #)"), ("RIGHT", "b.k", "(b.k #)"), ("LEFT", "b.k", None), ("FULL", "a.k", None)],
)
def test_contracts_count_on_the_kept_side(kind: str, by: str, passed: str | None) -> None:
    catalog = catalog_of(CLOSED)
    plan = optimize(bind(f"SELECT {by}, COUNT(*) FROM a {kind} JOIN b ON a.k = b.k GROUP BY {by}", catalog), catalog)
    text = explain_contract(plan, catalog)
    assert "left a: BOUNDED by b PUNCTUATED ON (k #)" in text and "right b: BOUNDED" in text
    assert ("contract: bounded" in text) == (passed is not None)
    assert passed is None or f"passes on {passed}" in text


def test_contracts_of_time() -> None:
    catalog = sample_catalog()
    moving = explain_contract(bind("SELECT a.v FROM a [RANGE 5] LEFT JOIN b ON a.k = b.k"), catalog)
    assert "left a: BOUNDED by [RANGE 5] and b ORDER BY ts" in moving
    assert moving.splitlines()[1].endswith("passes on time")
    still = explain_contract(bind("SELECT a.v FROM a LEFT JOIN b [RANGE 5] ON a.k = b.k"), catalog)
    assert still.splitlines()[1].endswith("passes on nothing")
