"""Each rule by itself: what it does, and what it leaves alone."""

from __future__ import annotations

import pytest

from millstream.algebra.expression import Binary, Column, InList, Literal
from millstream.algebra.types import Type
from millstream.algebra.window import PANE_END
from millstream.algebra.windower import tumbling
from millstream.logical.nodes.pane_aggregate import PaneAggregate
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from millstream.optimizer.canonical import canonical, canonical_predicates
from millstream.optimizer.context import Context
from millstream.optimizer.panes import paned_aggregates
from millstream.optimizer.projection import merge_projections
from millstream.optimizer.pruning import prune_columns
from millstream.optimizer.selection import push_selections
from tests.logical.sample import bind, catalog_of, sample_catalog

CATALOG = sample_catalog()
CONTEXT = Context(CATALOG)


def nodes(plan: Plan) -> list[str]:
    """The nodes from the scans up, without their schemas."""
    return [node.describe() for node in plan.walk()]


def pushed(query: str) -> list[str]:
    return nodes(push_selections(bind(query, CATALOG), CONTEXT))


# --- selection --------------------------------------------------------------------------------------------------------


def test_through_a_projection_with_substitution() -> None:
    assert pushed("SELECT x FROM (SELECT v + 1 AS x FROM a WHERE k = 2) y WHERE x > 5") == [
        "Scan a",
        "Select ((k = 2) AND ((v + 1) > 5))",
        "Project (v + 1) AS x",
    ]


def test_into_every_member_of_a_union() -> None:
    query = "SELECT k FROM (SELECT k, v FROM a UNION ALL SELECT v, k FROM b) u WHERE k > 1"
    assert pushed(query) == [
        "Scan a",
        "Select (k > 1)",
        "Project k, v",
        "Scan b",
        "Select (v > 1)",
        "Project v, k",
        "Union",
        "Project k",
    ]


def test_through_distinct_but_not_the_hidden_timestamp() -> None:
    query = "SELECT k FROM (SELECT DISTINCT k FROM entered) x WHERE k > 1 AND current_time > '2024-01-01'"
    assert pushed(query) == [
        "Scan entered",
        "Select (k > 1)",
        "Project k",
        "Distinct",
        "Select (__ts > TIMESTAMP '2024-01-01 00:00:00')",
    ]


def test_below_an_aggregate_only_on_groups() -> None:
    query = "SELECT k FROM a [RANGE 5] GROUP BY k HAVING k > 1 AND COUNT(*) > 2 AND window_end > 3"
    assert pushed(query) == [
        "Scan a",
        "Select (k > 1)",
        "WindowAggregate [RANGE 5 SLIDE 5] BY k COUNT(*) AS count",
        "Select ((count > 2) AND (window_end > 3))",
        "Project k",
    ]


def test_into_both_sides_of_a_key() -> None:
    query = "SELECT a.v FROM a [RANGE 5], b WHERE a.k = b.k AND b.k > 1 AND b.v = 2 AND a.v < b.v"
    assert pushed(query) == [
        "Scan a",
        "Select (k > 1)",
        "Scan b",
        "Select ((k > 1) AND (v = 2))",
        "WindowJoin a [RANGE 5], b [UNBOUNDED] ON a.k = b.k WHERE (a.v < b.v) merging",
        "Project a.v AS v",
    ]


def test_never_into_a_side_that_counts_rows() -> None:
    query = "SELECT a.v FROM a [ROWS 3], b WHERE a.k = b.k AND a.v = 1 AND a.k > 2 AND b.v = 3"
    assert pushed(query) == [
        "Scan a",
        "Scan b",
        "Select ((k > 2) AND (v = 3))",
        "WindowJoin a [ROWS 3], b [UNBOUNDED] ON a.k = b.k WHERE (a.v = 1) merging",
        "Project a.v AS v",
    ]


def test_a_probing_side_counts_nothing() -> None:
    query = "SELECT a.v FROM a [ROWS 0], b WHERE a.k = b.k AND a.v = 1"
    assert pushed(query)[:2] == ["Scan a", "Select (v = 1)"]


def test_conditions_of_an_outer_query_join_the_join() -> None:
    query = "SELECT p FROM (SELECT a.v AS p, b.v AS q FROM a, b WHERE a.k = b.k) x WHERE p < q AND q > 1"
    assert pushed(query)[2:4] == [
        "Select (v > 1)",
        "WindowJoin a [UNBOUNDED], b [UNBOUNDED] ON a.k = b.k WHERE (a.v < b.v) on arrival",
    ]


def test_table_joins() -> None:
    query = "SELECT city FROM a, sites WHERE a.k = sites.k AND sites.k > 1 AND open AND a.v = 2"
    assert pushed(query)[:3] == [
        "Scan a",
        "Select ((k > 1) AND (v = 2))",
        "TableJoin sites ON a.k = sites.k WHERE sites.open",
    ]
    outer = "SELECT city FROM a LEFT JOIN sites ON a.k = sites.k WHERE sites.k > 1 AND a.v = 2"
    assert pushed(outer)[:4] == [
        "Scan a",
        "Select (v = 2)",
        "TableJoin sites outer ON a.k = sites.k",
        "Select (sites.k > 1)",
    ]


def test_sequences() -> None:
    inner = "SELECT a.v AS p, b.v AS q, a.k FROM a, b WHERE SEQ(a, b) MODE {} AND a.k = b.k AND a.v = 1 AND b.v = 2"
    recent = pushed(f"SELECT p FROM ({inner.format('RECENT')}) x WHERE p > 3 AND q > 4 AND k > 5")
    assert recent[:6] == [
        "Scan a",
        "Select (k > 5)",
        "Scan b",
        "Select (((v = 2) AND (v > 4)) AND (k > 5))",
        "Sequence RECENT ON a.k = b.k WHERE (a.v = 1)",
        "Select (a.v > 3)",
    ]
    chronicle = pushed(f"SELECT p FROM ({inner.format('CHRONICLE')}) x WHERE p > 3 AND q > 4 AND k > 5")
    assert chronicle[:6] == [
        "Scan a",
        "Select ((v = 1) AND (k > 5))",
        "Scan b",
        "Select ((v = 2) AND (k > 5))",
        "Sequence CHRONICLE ON a.k = b.k",
        "Select ((a.v > 3) AND (b.v > 4))",
    ]


# --- projections ------------------------------------------------------------------------------------------------------


def test_adjacent_projections_become_one() -> None:
    plan = bind("SELECT x * 2 AS y FROM (SELECT v + 1 AS x, k FROM a) z", CATALOG)
    assert nodes(merge_projections(plan, CONTEXT)) == ["Scan a", "Project ((v + 1) * 2) AS y"]


def test_an_expression_used_twice_is_not_copied() -> None:
    plan = bind("SELECT x * x AS y FROM (SELECT v + 1 AS x FROM a) z", CATALOG)
    assert merge_projections(plan, CONTEXT) == plan
    cheap = bind("SELECT x * x AS y FROM (SELECT v AS x FROM a) z", CATALOG)
    assert nodes(merge_projections(cheap, CONTEXT)) == ["Scan a", "Project (v * v) AS y"]


def test_projections_without_effect_go() -> None:
    scan = bind("SELECT * FROM a", CATALOG)
    same = Project(scan, tuple((a.name, Column(a.type, a.name)) for a in scan.schema))
    assert merge_projections(same, CONTEXT) == scan
    turned = Project(scan, tuple(reversed(same.items)))
    assert merge_projections(turned, CONTEXT) == turned


# --- pruning ----------------------------------------------------------------------------------------------------------


def pruned(query: str) -> list[str]:
    return nodes(prune_columns(bind(query, CATALOG), CONTEXT))


def test_only_what_is_read_flows() -> None:
    assert pruned("SELECT v FROM a WHERE k > 1")[:2] == ["Scan a", "Project ts, k, v"]


def test_time_and_punctuated_columns_stay() -> None:
    # bids is punctuated on auction and ts; auctions has the primary key id
    assert pruned("SELECT price FROM bids WHERE price > 1")[1] == "Project auction, price, ts"
    assert pruned("SELECT seller FROM auctions WHERE seller > 1")[1] == "Project id, seller, ts"


def test_join_inputs_lose_what_only_their_selection_reads() -> None:
    plan = push_selections(bind("SELECT a.k FROM a, b WHERE a.k = b.k AND b.v = 1", CATALOG), CONTEXT)
    assert nodes(prune_columns(plan, CONTEXT)) == [
        "Scan a",
        "Project ts, k",
        "Scan b",
        "Project ts, k, v",
        "Select (v = 1)",
        "Project ts, k",
        "WindowJoin a [UNBOUNDED], b [UNBOUNDED] ON a.k = b.k on arrival",
        "Project a.k AS k",
    ]


def test_members_of_a_union_lose_the_same_positions() -> None:
    catalog = catalog_of(
        "CREATE STREAM p (x INT, y INT, z INT); CREATE STREAM q (x INT, y INT, z INT) PUNCTUATED ON (y #)"
    )
    plan = bind("SELECT x FROM (SELECT * FROM p UNION ALL SELECT * FROM q) u WHERE x > 1", catalog)
    assert nodes(prune_columns(plan, Context(catalog)))[:5] == [
        "Scan p",
        "Project x, y",
        "Scan q",
        "Project x, y",
        "Union",
    ]


def test_duplicate_elimination_needs_all_its_columns() -> None:
    plan = bind("SELECT k FROM (SELECT DISTINCT k, v FROM a) x", CATALOG)
    assert nodes(prune_columns(plan, CONTEXT)) == [
        "Scan a",
        "Project ts, k, v",
        "Project k, v",
        "Distinct",
        "Project k",
    ]


def test_unread_calls_are_not_computed() -> None:
    plan = bind("SELECT n FROM (SELECT k, COUNT(*) AS n, MAX(v) AS m FROM a [RANGE 5] GROUP BY k) x", CATALOG)
    assert "WindowAggregate [RANGE 5 SLIDE 5] BY k COUNT(*) AS count" in nodes(optimize(plan, CATALOG))


def test_a_count_keeps_a_column_to_count() -> None:
    assert pruned("SELECT COUNT(*) FROM loose [RANGE 5]")[1] == "Project k"


def test_without_a_catalog_only_time_is_kept() -> None:
    plan = bind("SELECT price FROM bids WHERE price > 1", CATALOG)
    assert nodes(prune_columns(plan, Context()))[1] == "Project price, ts"


# --- panes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "pane"),
    [("[RANGE 60 SLIDE 20]", 20), ("[RANGE 30 SLIDE 20]", 10), ("[RANGE 7 SLIDE 3]", 1), ("[RANGE 20]", None),
     ("[RANGE 5 SLIDE 20]", None), ("[RANGE 1000000 SLIDE 7]", None)],
)  # fmt: skip
def test_panes(window: str, pane: int | None) -> None:
    plan = bind(f"SELECT sensor, SUM(volume) FROM s {window} GROUP BY sensor", CATALOG)
    made = paned_aggregates(plan, CONTEXT)
    assert made.schema == plan.schema
    if pane is None:
        assert made == plan
        return
    upper = made.inputs[0]
    assert isinstance(upper, WindowAggregate) and upper.over_panes
    assert isinstance(upper.input, PaneAggregate) and upper.input.windows == tumbling(pane)
    assert (upper.group, upper.aggregates) == (upper.input.group, upper.input.aggregates)
    assert paned_aggregates(made, CONTEXT) == made


def test_panes_can_be_switched_off() -> None:
    plan = bind("SELECT SUM(volume) FROM s [RANGE 60 SLIDE 20]", CATALOG)
    assert not any(isinstance(node, PaneAggregate) for node in optimize(plan, CATALOG, paned=False).walk())


def test_panes_over_a_windowing_attribute() -> None:
    plan = bind("SELECT window_end, COUNT(*) FROM loose [RANGE 10 SLIDE 5 ON number]", CATALOG)
    upper = paned_aggregates(plan, CONTEXT).inputs[0]
    assert isinstance(upper, WindowAggregate) and isinstance(upper.input, PaneAggregate)
    assert (upper.attribute, upper.input.attribute) == (PANE_END, "number")
    assert upper.schema == plan.inputs[0].schema


# --- canonical spelling and sharing -----------------------------------------------------------------------------------


def test_canonical_spelling() -> None:
    x, y = Column(Type.INT, "x"), Column(Type.INT, "y")
    five = Literal(Type.INT, 5)
    less = Binary(Type.BOOLEAN, "<", five, x)
    swapped = Binary(Type.BOOLEAN, "=", y, x)
    options = InList(Type.BOOLEAN, x, tuple(Literal(Type.INT, n) for n in (10, 9, 9)))
    both = Binary(
        Type.BOOLEAN, "AND", Binary(Type.BOOLEAN, "AND", swapped, less), Binary(Type.BOOLEAN, "AND", options, less)
    )
    assert str(canonical(both)) == "(((x = y) AND (x > 5)) AND (x IN (9, 10)))"
    assert canonical(canonical(both)) == canonical(both)


def test_spellings_of_one_query_have_one_plan() -> None:
    one = "SELECT k FROM a WHERE k > 1 AND v IN (2, 1)"
    other = "SELECT k FROM (SELECT * FROM a WHERE v IN (1, 2, 1)) x WHERE 1 < k"
    assert optimize(bind(one, CATALOG), CATALOG) == optimize(bind(other, CATALOG), CATALOG)


def test_join_keys_are_sorted() -> None:
    texts = ("a.k = b.k AND a.v = b.v", "b.v = a.v AND b.k = a.k")
    plans = {canonical_predicates(bind(f"SELECT a.k FROM a, b WHERE {t}", CATALOG), CONTEXT) for t in texts}
    assert len(plans) == 1
    (plan,) = plans
    assert isinstance(plan.inputs[0], WindowJoin) and plan.inputs[0].keys == (("k", "k"), ("v", "v"))
