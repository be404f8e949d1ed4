"""Joins of several inputs on a common attribute: which are grouped, what they mean, what they cost."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import OptionError
from millstream.logical.explain import explain
from millstream.logical.join.cost import (
    Flow,
    hash_cost,
    input_cost,
    mean_lifetime,
    multi_join_cost,
    on_the_fly,
    tree_cost,
)
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import EVERYWHERE
from millstream.optimizer import optimize
from millstream.physical.plan.partitioning import partition_keys
from tests.logical.sample import bind, catalog_of, explain_contract
from tests.reference.meaning.relation import Rows
from tests.reference.plan import run
from tests.tries import tries

STREAMS = ("a", "b", "c", "d", "e")
SCRIPT = ";".join(f"CREATE STREAM {s} (ts BIGINT, k BIGINT, m BIGINT, v BIGINT) ORDER BY ts" for s in STREAMS)
CATALOG = catalog_of(SCRIPT)


def joins(query: str, multi_join: str = "always") -> list[str]:
    """The joins of a plan, from the scans up."""
    plan = optimize(bind(query, CATALOG), CATALOG, multi_join=multi_join)
    return [node.describe() for node in plan.walk() if isinstance(node, MultiJoin | WindowJoin)]


def test_three_streams_on_one_key() -> None:
    query = "SELECT a.v, c.v FROM a [RANGE 5], b [RANGE 6], c [RANGE 7] WHERE a.k = b.k AND b.k = c.k AND a.v < c.v"
    assert joins(query) == [
        "MultiJoin a [RANGE 5], b [RANGE 6], c [RANGE 7] ON a.k = b.k = c.k WHERE (a.v < c.v) merging"
    ]


def test_without_windows_tuples_join_on_arrival() -> None:
    query = "SELECT a.v FROM a, b, c, d WHERE a.k = b.k AND b.k = c.k AND c.k = d.m"
    assert joins(query) == [
        "MultiJoin a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED], d [UNBOUNDED] ON a.k = b.k = c.k = d.m on arrival"
    ]


def test_the_last_window_may_count() -> None:
    query = "SELECT a.v FROM a [RANGE 5], b [RANGE 6], c [ROWS 7] WHERE a.k = b.k AND b.k = c.k"
    assert joins(query) == ["MultiJoin a [RANGE 5], b [RANGE 6], c [ROWS 7] ON a.k = b.k = c.k merging"]


@pytest.mark.parametrize("way", ["auto", "always", "never"])
def test_windows_that_count_are_in_one_operator_whatever_is_set(way: str) -> None:
    query = "SELECT a.v FROM a [ROWS 2], b, c, d [RANGE 5] WHERE a.k = b.k AND b.k = c.k AND d.k = a.k AND b.v > 1"
    assert joins(query, way) == [
        "MultiJoin a [ROWS 2], b [UNBOUNDED], c [UNBOUNDED], d [RANGE 5] ON a.k = b.k = c.k = d.k merging"
    ]
    plan = optimize(bind(query, CATALOG), CATALOG, multi_join=way)
    assert "Select (v > 1)" in explain(plan)  # below the join: b does not count
    assert "; a tree cannot count rows" in explain(plan)


def test_a_condition_on_a_stream_that_counts_stays_in_the_join() -> None:
    query = "SELECT a.v FROM a [ROWS 2], b, c WHERE a.k = b.k AND b.k = c.k AND a.v > 1 AND a.m = c.m AND a.k < 7"
    assert joins(query) == [
        "MultiJoin a [ROWS 2], b [UNBOUNDED], c [UNBOUNDED] ON a.k = b.k = c.k "
        "WHERE ((a.m = c.m) AND (a.v > 1)) merging"
    ]


def test_the_last_window_counts_in_the_order_of_time() -> None:
    query = "SELECT a.v FROM a, b, c [ROWS 7] WHERE a.k = b.k AND b.k = c.k"
    assert joins(query, "never") == ["MultiJoin a [UNBOUNDED], b [UNBOUNDED], c [ROWS 7] ON a.k = b.k = c.k merging"]
    several = "SELECT a.v FROM a [RANGE 5], b, c [ROWS 7] WHERE a.k = b.k AND b.m = c.m"
    assert joins(several)[1] == "WindowJoin [UNBOUNDED], c [ROWS 7] ON b.m = c.m WHERE (a.ts >= (c.ts - 5)) merging"


def test_two_keys_that_all_have() -> None:
    query = "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.m = b.m AND c.m = a.m"
    assert joins(query) == [
        "MultiJoin a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED] ON a.k = b.k = c.k AND a.m = b.m = c.m on arrival"
    ]


def test_what_only_some_have_in_common_stays_a_condition() -> None:
    query = "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.m = c.m AND b.k = b.m"
    (made,) = joins(query)
    assert "ON a.k = b.k = c.k WHERE (a.m = c.m) on arrival" in made


def test_a_column_that_one_stream_has_twice() -> None:
    (made,) = joins("SELECT a.v FROM a, b, c WHERE a.k = b.k AND a.k = b.m AND b.k = c.k")
    assert "ON a.k = b.k = c.k WHERE (b.k = b.m) on arrival" in made


def test_two_attributes_make_a_group_and_a_join_of_two() -> None:
    query = (
        "SELECT a.v FROM a [RANGE 5], b [RANGE 6], c [RANGE 7], d [RANGE 8] WHERE a.k = b.k AND b.k = c.k AND c.m = d.m"
    )
    assert joins(query) == [
        "MultiJoin a [RANGE 5], b [RANGE 6], c [RANGE 7] ON a.k = b.k = c.k merging",
        "WindowJoin [RANGE 7], d [RANGE 8] ON c.m = d.m "
        "WHERE (((a.ts >= (d.ts - 5)) AND (b.ts >= (d.ts - 6))) AND (c.ts >= (d.ts - 7))) merging",
    ]


def test_a_group_may_skip_a_stream() -> None:
    query = "SELECT a.v, b.v, c.v, d.v FROM a, b, c, d WHERE a.k = b.k AND b.m = c.m AND a.k = d.k"
    assert joins(query) == [
        "MultiJoin a [UNBOUNDED], b [UNBOUNDED], d [UNBOUNDED] ON a.k = b.k = d.k on arrival",
        "WindowJoin [UNBOUNDED], c [UNBOUNDED] ON b.m = c.m on arrival",
    ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.m = c.m",
        "SELECT a.v FROM a, b WHERE a.k = b.k",
        "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.ts BETWEEN b.ts - 3 AND b.ts + 3",
    ],
    ids=["no common attribute", "two streams", "windows that differ"],
)
def test_what_is_not_grouped(query: str) -> None:
    assert not any(join.startswith("MultiJoin") for join in joins(query))


def test_never() -> None:
    query = "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
    assert len(joins(query, "never")) == 2 and len(joins(query, "auto")) == 1


def test_costs_decide_and_are_shown() -> None:
    common = "SELECT a.v FROM a [RANGE 60], b [RANGE 60], c [RANGE 60] WHERE a.k = b.k AND b.k = c.k"
    made = explain(optimize(bind(common, CATALOG), CATALOG))
    assert "costs" in made and "; as a tree" in made
    selective = f"{common} AND a.v < b.v AND a.m < b.m"  # a tree drops most partial results at once
    made = explain(optimize(bind(selective, CATALOG), CATALOG))
    assert "MultiJoin" not in made and made.count("costs") == 1 and "; in one operator" in made
    several = explain(optimize(bind(common.replace(" WHERE", ", d WHERE c.m = d.m AND"), CATALOG), CATALOG))
    assert several.index("WindowJoin") < several.index("MultiJoin") < several.index("costs")


def test_the_option() -> None:
    mill = LocalMill()
    mill.execute(SCRIPT)
    query = "EXPLAIN SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
    assert "MultiJoin" in mill.execute(query)
    mill.execute("SET multi_join = 'never'")
    assert "MultiJoin" not in mill.execute(query)
    with pytest.raises(OptionError, match="multi_join"):
        mill.execute("SET multi_join = 'sometimes'")
    assert Options(join_memory=1).join_grouping == Options(propagation="request").join_grouping == "never"


def test_shards_are_by_the_common_key() -> None:
    query = "SELECT a.v FROM a, b, c{} WHERE a.k = b.m AND b.m = c.k"
    plan = optimize(bind(query.format(""), CATALOG), CATALOG, multi_join="always")
    assert partition_keys(plan) == {"a": ("k",), "b": ("m",), "c": ("k",)}
    counting = query.replace("a,", "a [RANGE 5],").replace("b,", "b [RANGE 5],").format(" [ROWS 3]")
    plan = optimize(bind(counting, CATALOG), CATALOG, multi_join="always")
    assert any(isinstance(node, MultiJoin) for node in plan.walk())
    assert partition_keys(plan) == {"a": ("k",), "b": ("m",), "c": EVERYWHERE}


def test_contracts() -> None:
    windows = "SELECT a.v FROM a [RANGE 5], b [RANGE 6], c [RANGE 7] WHERE a.k = b.k AND b.k = c.k"
    made = explain_contract(optimize(bind(windows, CATALOG), CATALOG, multi_join="always"), CATALOG)
    assert "input a: BOUNDED by [RANGE 5] and" in made and made.endswith("contract: bounded")
    closing = catalog_of(";".join(f"CREATE STREAM {s} (k BIGINT, v BIGINT) PUNCTUATED ON (k #)" for s in "abc"))
    keys = "SELECT a.k, a.v FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
    made = explain_contract(optimize(bind(keys, closing), closing, multi_join="always"), closing)
    assert "input a: BOUNDED by b PUNCTUATED ON (k #) and c PUNCTUATED ON (k #)" in made
    assert made.endswith("contract: bounded") and "passes on (a.k #)" in made


# --- meaning ----------------------------------------------------------------------------------------------------------


class Queries:
    """Draws joins of three to five streams."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def query(self, most: int = 5) -> str:
        names = [f"x{i}" for i in range(self.draw.randint(3, most))]
        ranged = self.draw.random() < 0.6
        sources = []
        for place, name in enumerate(names):
            window = self.draw.choice(["", " [RANGE 3]", " [RANGE 5]", " [NOW]"]) if ranged else ""
            stream = self.draw.choice(STREAMS[:3])
            if place == len(names) - 1 and self.draw.random() < 0.2:
                stream, window = STREAMS[3], self.draw.choice([" [ROWS 1]", " [ROWS 2]", " [ROWS 0]"])
            sources.append(f"{stream}{window} {name}")
        conditions = []
        for place, name in enumerate(names[1:], start=1):
            earlier = self.draw.choice(names[:place])
            column = self.draw.choice(["k", "k", "k", "m"])
            conditions.append(f"{earlier}.{self.draw.choice(['k', 'k', column])} = {name}.{column}")
        while self.draw.random() < 0.4:
            one, other = self.draw.sample(names, 2)
            conditions.append(
                self.draw.choice(
                    [
                        f"{one}.v <= {other}.v",
                        f"{one}.m = {other}.m",
                        f"{one}.v + {other}.m > 1",
                        f"{one}.k = {one}.m",
                        f"{one}.v > 0",
                        f"{one}.ts <= {other}.ts + 1",
                    ]
                )
            )
        wanted = [f"{name}.{self.draw.choice(['ts', 'k', 'm', 'v'])}" for name in names]
        return f"SELECT {', '.join(wanted)} FROM {', '.join(sources)} WHERE {' AND '.join(conditions)}"


def stream(draw: random.Random, size: int = 6) -> Rows:
    times = sorted(draw.randrange(9) for _ in range(draw.randrange(size)))
    return [({"ts": ts} | {name: draw.choice((0, 1, 1, None)) for name in "kmv"}, ts) for ts in times]


def bag(rows: Rows) -> Counter[Any]:
    return Counter((tuple(row.values()), ts) for row, ts in rows)


@settings(max_examples=tries(60))
@given(st.integers(0, 2**40))
def test_grouping_keeps_the_result(seed: int) -> None:
    plan = bind(Queries(seed).query(), CATALOG)
    tree_plan, grouped = (optimize(plan, CATALOG, multi_join=way) for way in ("never", "always"))
    # What follows time depends on the shape of the tree.
    assert replace(grouped.schema, follows=(), offsets=()) == replace(tree_plan.schema, follows=(), offsets=())
    again = optimize(grouped, CATALOG, multi_join="always")
    draw = random.Random(seed)
    for _ in range(3):
        streams = {name: stream(draw) for name in STREAMS}
        expected = bag(run(tree_plan, streams, {}))
        assert bag(run(grouped, streams, {})) == expected, explain(grouped)
        assert bag(run(again, streams, {})) == expected, explain(again)


def outcome(query: str, way: str, seed: int, shards: int) -> tuple[Counter[Any], int]:
    """All results of a query that is fed bit by bit, and the most that it held."""
    draw = random.Random(seed)
    mill = LocalMill(Options(multi_join=way, shards=shards))
    mill.execute(SCRIPT)
    mill.add_query("q", query)
    now, most, found = dict.fromkeys(STREAMS[:4], 0), 0, Counter[Any]()
    for _ in range(20):
        name = draw.choice(STREAMS[:4])
        if draw.random() < 0.2:
            mill.punctuate(name, f"[k = {draw.randrange(100, 200)}]")
        else:
            rows = []
            for _ in range(draw.randrange(4)):
                now[name] += draw.randrange(3)
                rows.append((now[name], *(draw.choice((0, 1, 1, None)) for _ in range(3))))
            mill.insert(name, rows)
        if draw.random() < 0.7:
            mill.batch()
            most = max(most, mill.state_rows("q"))
            found.update(mill.take_rows("q").rows())
        if draw.random() < 0.1:
            mill.batch()
            found.update(mill.take_rows("q").rows())
            mill = mill.restarted()
    for name in STREAMS[:4]:
        mill.punctuate(name, "[ts < 1000]")
    mill.batch()
    found.update(mill.take_rows("q").rows())
    return found, most


@settings(max_examples=tries(10))
@given(st.integers(0, 2**40), st.sampled_from([1, 2]))
def test_both_ways_run_alike(seed: int, shards: int) -> None:
    query = Queries(seed).query(most=4)
    assert outcome(query, "always", seed, shards)[0] == outcome(query, "never", seed, shards)[0], query


# --- costs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lag", "window", "expected"),
    [(2.5, 12, 12), (-0.5, 5, 0), (0.8, 5, 2.75), (0.5, 8, 1.25), (1.5, 9, 8.2), (1.5, 20, 10)],
)
def test_t18_mean_lifetime(lag: float, window: float, expected: float) -> None:
    assert mean_lifetime(lag, 10, window) == pytest.approx(expected)


@settings(max_examples=tries(60))
@given(st.floats(-1, 3), st.floats(0.5, 40))
def test_mean_lifetime_is_that_of_a_simulation(lag: float, window: float) -> None:
    """Tuples of a value come evenly over its lifespan; each stays until its window or the punctuation ends it."""
    life, count = 10.0, 4000
    ages = [min(window, max(0.0, lag * life - (place + 0.5) * life / count)) for place in range(count)]
    assert mean_lifetime(lag, life, window) == pytest.approx(sum(ages) / count, abs=0.02)


def test_parts_of_the_cost() -> None:
    assert [on_the_fly(lag) for lag in (-1, 0, 0.25, 1, 3)] == [1, 1, 0.75, 0, 0]
    flow = Flow(rate=100, window=10)
    assert flow.state == 1000
    assert Flow(rate=100, window=5, lag=0.8, lifespan=10).state == pytest.approx(275)
    # 2000 held, 10 buckets, 4 alike: 25 looked at; stored and deleted on two lists each
    assert input_cost(flow, 2000, 10, 4) == pytest.approx(100 * (25 + 4))
    punctuated = Flow(rate=100, window=10, punctuations=10, lag=0.5, lifespan=10, scheduled=0.5)
    assert input_cost(punctuated, 2000, 10, 4) == pytest.approx(100 * (25 + 2) + 10 * (25 + 1))
    assert hash_cost(flow, flow, 10) == pytest.approx(100 * (100 + 2))


def test_a_multi_join_holds_no_partial_results() -> None:
    flows = [Flow(rate=100, window=10)] * 4
    one, other = multi_join_cost(flows, keys=100), tree_cost(flows, keys=100)
    assert one.held == 4000 and other.held > 10 * one.held and one.cost < other.cost
