"""Queries over one stream: names, windows, aggregates, unions."""

from __future__ import annotations

import pytest

from millstream.algebra.schema import TimeKind
from millstream.algebra.types import Type
from millstream.algebra.windower import Hopping, tumbling
from millstream.errors import BindError, MillstreamError, PlanError
from millstream.logical.nodes.distinct import Distinct
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.nodes.union import Union
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan
from tests.logical.sample import bind, catalog_of


def aggregate(text: str) -> WindowAggregate:
    return next(node for node in bind(text).walk() if isinstance(node, WindowAggregate))


def test_a_plain_star_is_the_scan() -> None:
    assert isinstance(bind("SELECT * FROM BIDS"), Scan)
    assert isinstance(bind("SELECT b.* FROM bids AS b"), Scan)
    assert isinstance(bind("SELECT auction, bidder, price, ts FROM bids"), Scan)


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("price, PRICE, price AS p", ("price", "price_1", "p")),
        ("*, price", ("auction", "bidder", "price", "ts", "price_1")),
        (
            "price + 1, upper('x'), CAST(price AS BIGINT), CASE WHEN TRUE THEN 1 END",
            ("column_1", "upper", "price", "case"),
        ),
        ("price AS x, auction AS x_1, bidder AS x", ("x", "x_1", "x_2")),
        ("extract(hour FROM ts)", ("hour",)),
    ],
)
def test_names_of_results(items: str, names: tuple[str, ...]) -> None:
    assert bind(f"SELECT {items} FROM bids").schema.names == names


def test_joined_names_are_numbered() -> None:
    assert bind("SELECT a.k, b.k FROM a, b").schema.names == ("k", "k_1")
    assert bind("SELECT * FROM a, b").schema.names == ("ts", "k", "v", "note", "ts_1", "k_1", "v_1", "note_1")
    assert bind("SELECT b.*, a.k FROM a, b").schema.names == ("ts", "k", "v", "note", "k_1")


def test_time_survives_a_projection_only_as_a_plain_column() -> None:
    assert bind("SELECT price, ts AS at FROM bids").schema.time == "at"
    assert bind("SELECT price FROM bids").schema.time is None
    assert bind("SELECT ts + INTERVAL '1' SECOND AS ts FROM bids").schema.time is None


# --- windows and aggregates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "range_", "slide"),
    [
        ("s [RANGE 60 SLIDE 20]", 60, 20),
        ("s [RANGE 60 SECONDS SLIDE 20 SECONDS]", 60, 20),
        ("s [RANGE 2 MINUTES]", 120, 120),
        ("bids [RANGE 60 SLIDE 20]", 60_000_000, 20_000_000),
        ("bids [RANGE 1 MINUTE SLIDE 500 MILLISECONDS]", 60_000_000, 500_000),
        ("entered [RANGE 5 SECONDS]", 5_000_000, 5_000_000),
        ("s WINDOW [RANGE=60s, SLIDE=20s, WATTR=ts]", 60, 20),
        ("HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)", 10_000_000, 2_000_000),
        ("TUMBLE(TABLE s, DESCRIPTOR(ts), 10)", 10, 10),
        ("s [RANGE 5 SLIDE 20]", 5, 20),
    ],
)
def test_windows_in_timestamp_units(source: str, range_: int, slide: int) -> None:
    made = aggregate(f"SELECT COUNT(*) FROM {source}")
    assert (made.windows, made.attribute, made.group) == (Hopping(range_, slide), None, ())


def test_windowing_attribute() -> None:
    made = aggregate("SELECT window_end, COUNT(*) FROM loose [RANGE 10 SLIDE 5 ON number]")
    assert (made.windows, made.attribute) == (Hopping(10, 5), "number")
    assert made.schema.type_of("window_end") is Type.BIGINT
    stamped = aggregate("SELECT window_end, COUNT(*) FROM loose [RANGE 10 ON at]")
    assert stamped.windows == tumbling(10_000_000) and stamped.schema.type_of("window_end") is Type.TIMESTAMP


@pytest.mark.parametrize(
    ("call", "described", "type_"),
    [
        ("COUNT(*)", "COUNT(*) AS count", Type.BIGINT),
        ("COUNT(1)", "COUNT(*) AS count", Type.BIGINT),
        ("COUNT(name)", "COUNT(name) AS count_name", Type.BIGINT),
        ("SUM(category)", "SUM(category) AS sum_category", Type.BIGINT),
        ("Average(category)", "AVG(category) AS avg_category", Type.DOUBLE),
        ("MIN(name)", "MIN(name) AS min_name", Type.VARCHAR),
        ("MAX(ts)", "MAX(ts) AS max_ts", Type.TIMESTAMP),
        ("SUM(id * 1.5)", "SUM(argument_1) AS sum_argument_1", Type.DOUBLE),
        ("MAX(DISTINCT id)", "MAX(id) AS max_id", Type.BIGINT),
    ],
)
def test_aggregates(call: str, described: str, type_: Type) -> None:
    made = aggregate(f"SELECT {call} FROM auctions [RANGE 10]")
    assert [str(c) for c in made.aggregates] == [described]
    assert made.aggregates[0].type is type_


def test_equal_calls_are_computed_once() -> None:
    made = aggregate(
        "SELECT MAX(v), MAX(a.v) - MIN(v), MAX(v + 1) FROM a [RANGE 5] HAVING MAX(V) > 1 AND MAX(v + 1) > 2"
    )
    assert [c.name for c in made.aggregates] == ["max_v", "max_argument_1", "min_v"]


@pytest.mark.parametrize(
    ("group", "expected"),
    [("k", ("k",)), ("a.k, k", ("k",)), ("1", ("k",)), ("key", ("k",)), ("window_end, k, window_start", ("k",)),
     ("k, v", ("k", "v")), ("k + 1, k", ("group_1", "k"))],
)  # fmt: skip
def test_groups(group: str, expected: tuple[str, ...]) -> None:
    assert aggregate(f"SELECT k AS key, COUNT(*) FROM a [RANGE 5] GROUP BY {group}").group == expected


def test_group_expressions_can_be_selected() -> None:
    plan = bind("SELECT (k + 1) * 2 AS x, k + 1 FROM a [RANGE 5] GROUP BY k + 1 HAVING k + 1 > 3")
    assert isinstance(plan, Project) and isinstance(plan.input, Select)
    assert [str(e) for _, e in plan.items] == ["(group_1 * 2)", "group_1"]
    assert str(plan.input.predicate) == "(group_1 > 3)"


def test_having_knows_aliases_and_window_columns() -> None:
    plan = bind("SELECT SUM(volume) AS total FROM s [RANGE 5] GROUP BY sensor HAVING total > 5 AND window_start >= 10")
    assert isinstance(plan, Project) and isinstance(plan.input, Select)
    assert str(plan.input.predicate) == "((sum_volume > 5) AND (window_start >= 10))"


def test_no_window_waits_for_punctuation_on_the_group() -> None:
    made = aggregate("SELECT auction, COUNT(*) FROM bids GROUP BY auction")
    assert (made.windows, made.schema.names) == (None, ("auction", "count"))
    assert aggregate("SELECT auction, COUNT(*) FROM bids [UNBOUNDED] GROUP BY auction").windows is None


def test_an_aggregate_over_window_columns_of_another() -> None:
    inner = "SELECT window_end, sensor, SUM(volume) AS total FROM s [RANGE 60 SLIDE 20] GROUP BY sensor"
    grouped = bind(f"SELECT window_end, MAX(total) FROM ({inner}) q GROUP BY window_end")
    assert grouped.inputs[0].describe() == "WindowAggregate BY window_end MAX(total) AS max_total"
    both = bind(
        f"SELECT window_end, q.window_end AS old, MAX(total) FROM ({inner}) q [RANGE 120] GROUP BY q.window_end"
    )
    assert both.schema.names == ("window_end", "old", "max")
    assert both.inputs[0].describe() == "WindowAggregate [RANGE 120 SLIDE 120] BY group_1 MAX(total) AS max_total"


def test_current_time_is_the_hidden_timestamp() -> None:
    plan = bind("SELECT current_time, MAX(v) FROM entered [RANGE 5] GROUP BY current_time")
    assert [n for n, _ in plan.inputs[0].inputs[0].items] == ["k", "v", "group_1"]  # type: ignore[attr-defined]
    assert plan.schema.type_of("current_time") is Type.TIMESTAMP


# --- unions and subqueries --------------------------------------------------------------------------------------------


def test_unions_are_flat_and_agree_in_types() -> None:
    plan = bind("SELECT k FROM a UNION ALL SELECT k FROM b UNION ALL SELECT v FROM entered WHERE FALSE", UNITED)
    assert isinstance(plan, Union) and len(plan.members) == 3
    assert plan.schema.attributes[0].type is Type.DOUBLE
    assert all(member.schema.attributes[0].type is Type.DOUBLE for member in plan.members)


UNITED = catalog_of(
    "CREATE STREAM a (k BIGINT) ORDER BY current_time; CREATE STREAM b (k INT) ORDER BY current_time;"
    "CREATE STREAM entered (v DOUBLE) ORDER BY current_time"
)


def test_distinct_and_subqueries_and_derived_streams() -> None:
    plan = bind("SELECT DISTINCT sensor FROM (SELECT * FROM big WHERE sensor > 1) x")
    assert isinstance(plan, Distinct)
    scans = [node for node in plan.walk() if isinstance(node, Scan)]
    assert [scan.stream for scan in scans] == ["s"]


def test_late_tuples_can_be_put_back() -> None:
    united = "(SELECT * FROM s UNION ALL SELECT * FROM s__late) u"
    assert bind(f"SELECT * FROM {united}").schema.kind is TimeKind.LATENT
    assert aggregate(f"SELECT COUNT(*) FROM {united} [RANGE 5 ON ts]").attribute == "ts"


def test_companion_streams_are_latent() -> None:
    plan = bind("SELECT COUNT(*) FROM s__late [RANGE 1 MINUTE]")
    assert plan.schema.kind is TimeKind.LATENT


def test_equal_queries_make_equal_plans() -> None:
    one, other = (bind(f"SELECT k AS {n}, SUM(v) AS {n}2 FROM a [RANGE 5] GROUP BY k") for n in ("x", "y"))
    assert one != other and one.inputs == other.inputs
    assert hash(one.inputs[0]) == hash(other.inputs[0])


# --- mistakes ---------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[str, type[MillstreamError], int, str, str]] = [
    ("SELECT pric FROM bids", BindError, 8, "unknown column 'pric'", "'price'"),
    ("SELECT b.price FROM bids", BindError, 8, "unknown alias 'b'", "bids"),
    ("SELECT b.pric FROM bids b", BindError, 8, "unknown column 'b.pric'", "'price'"),
    ("SELECT x.y.z FROM bids", BindError, 8, "unknown column 'x.y.z'", "alias.column"),
    ("SELECT price FROM bid", BindError, 19, "unknown stream 'bid'", "'bids'"),
    ("SELECT x.* FROM bids b", BindError, 8, "unknown alias 'x'", ""),
    ("SELECT k FROM a, b", BindError, 8, "column 'k' is ambiguous", "write a.k or b.k"),
    ("SELECT a.k FROM a, b a", BindError, 20, "'a' appears twice", "another alias"),
    ("SELECT a.k FROM a, a", BindError, 20, "'a' appears twice", "a a, a b"),
    ("SELECT k FROM sites", PlanError, 15, "'sites' is a table", "at least one stream"),
    ("SELECT a.k FROM a, sites [ROWS 1]", PlanError, 20, "has no windows", ""),
    ("SELECT price AS __ts FROM bids", BindError, 8, "reserved name", ""),
    ("SELECT price FROM bids ORDER BY price", PlanError, 24, "ORDER BY is not possible", "never ends"),
    ("SELECT price FROM bids LIMIT 5 OFFSET 5", PlanError, 32, "OFFSET is not possible", "LIMIT n alone"),
    ("SELECT price FROM bids LIMIT price", BindError, 24, "LIMIT needs a whole number", "LIMIT 10"),
    ("SELECT k FROM a UNION SELECT k FROM b", PlanError, 17, "UNION is not possible", "UNION ALL"),
    ("SELECT k FROM a EXCEPT SELECT k FROM b", PlanError, 17, "EXCEPT is not possible", ""),
    ("SELECT k FROM a UNION ALL SELECT k, v FROM b", BindError, 17, "UNION ALL of 1 and 2 columns", ""),
    ("SELECT k FROM a UNION ALL SELECT note FROM b", BindError, 17, "mixes BIGINT and VARCHAR", ""),
    ("SELECT ts FROM a UNION ALL SELECT k FROM entered", BindError, 18, "different units", ""),
    ("SELECT COUNT(*) FROM (SELECT * FROM s UNION ALL SELECT * FROM s__late) [RANGE 5]", PlanError, 1, "over", ""),
    ("SELECT current_time FROM bids", BindError, 8, "current_time is not a column", "ORDER BY current_time"),
    ("SELECT window_end FROM bids", PlanError, 8, "window_end needs a window and an aggregate", ""),
    ("SELECT price FROM bids [RANGE 5 SLIDE 2]", PlanError, 39, "SLIDE needs an aggregate", "COUNT(*)"),
    ("SELECT * FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 5)", PlanError, 15, "TUMBLE needs an aggregate", ""),
    ("SELECT COUNT(*) FROM bids", PlanError, 1, "never has a result", "bids [RANGE 60 SECONDS]"),
    ("SELECT COUNT(*) FROM a, b", PlanError, 1, "never has a result", "WINDOW [RANGE"),
    ("SELECT COUNT(*) FROM bids [ROWS 5]", PlanError, 27, "ROWS window with an aggregate is not available", "RANGE"),
    ("SELECT COUNT(*) FROM bids [NOW]", PlanError, 27, "NOW window is too short", ""),
    ("SELECT COUNT(*) FROM bids [RANGE 0]", BindError, 34, "RANGE must be positive", "[NOW]"),
    ("SELECT COUNT(*) FROM bids [RANGE 5 SLIDE 0]", BindError, 42, "SLIDE must be positive", ""),
    ("SELECT COUNT(*) FROM bids [RANGE -5 SECONDS]", BindError, 34, "RANGE must be positive", ""),
    ("SELECT COUNT(*) FROM s [RANGE 500 MILLISECONDS]", BindError, 31, "not a whole number", "one second"),
    ("SELECT COUNT(*) FROM bids [RANGE 5 MINUTES SLIDE 1]", BindError, 50, "mix units", "write 1 MINUTES"),
    ("SELECT COUNT(*) FROM bids [RANGE 5 ON price]", BindError, 27, "'price' is DOUBLE", ""),
    ("SELECT COUNT(*) FROM bids [RANGE 5 ON prise]", BindError, 27, "unknown column 'prise'", "'price'"),
    ("SELECT COUNT(*) FROM bids [RANGE 5] WINDOW [RANGE 5]", PlanError, 44, "two windows", ""),
    ("SELECT price FROM bids WHERE SUM(price) > 5", PlanError, 30, "SUM is an aggregate, not allowed", "HAVING"),
    ("SELECT SUM(MAX(price)) FROM bids [RANGE 5]", PlanError, 8, "an aggregate inside an aggregate", "subquery"),
    ("SELECT price, COUNT(*) FROM bids [RANGE 5]", PlanError, 8, "'price' is neither in GROUP BY", "MAX(price)"),
    ("SELECT price + 1 FROM bids [RANGE 5] GROUP BY bidder", PlanError, 8, "'price' is neither", ""),
    ("SELECT k FROM a [RANGE 5] GROUP BY k HAVING v > 1", PlanError, 45, "'v' is neither", ""),
    ("SELECT pric, COUNT(*) FROM bids [RANGE 5]", BindError, 8, "unknown column 'pric'", "'price'"),
    ("SELECT * FROM bids [RANGE 5] GROUP BY price", PlanError, 8, "* cannot be combined with", ""),
    ("SELECT COUNT(*) FROM bids [RANGE 5] GROUP BY COUNT(*)", PlanError, 46, "cannot contain an aggregate", ""),
    ("SELECT COUNT(*) FROM bids [RANGE 5] GROUP BY 2", BindError, 46, "the select list has 1 items", ""),
    ("SELECT COUNT(*) FROM bids [RANGE 5] GROUP BY 'x'", BindError, 46, "GROUP BY needs a column", ""),
    ("SELECT LAG(price) FROM bids", PlanError, 8, "LAG has a result per tuple and needs OVER", "LAG(x) OVER"),
    ("SELECT SUM(*) FROM bids [RANGE 5]", BindError, 8, "SUM(*) means nothing", "SUM(x)"),
    ("SELECT SUM(price, 1) FROM bids [RANGE 5]", BindError, 8, "SUM takes 1 argument, found 2", ""),
    ("SELECT SUM(name) FROM auctions [RANGE 5]", BindError, 8, "SUM needs a number, not VARCHAR", ""),
    ("SELECT k FROM a WHERE SEQ(a, a) MODE RECENT", PlanError, 23, "SEQ needs two streams", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "column", "message", "hint"), ERRORS, ids=[case[0] for case in ERRORS])
def test_errors(text: str, kind: type[MillstreamError], column: int, message: str, hint: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        bind(text)
    error = caught.value
    assert type(error) is kind
    assert message in error.message and hint in error.hint, str(error)
    assert (error.line, error.column) == (1, column), str(error)


def test_plans_are_plain_values() -> None:
    plan: Plan = bind("SELECT k FROM a WHERE v > 1")
    assert plan == bind("select K\nfrom A where V>1")
