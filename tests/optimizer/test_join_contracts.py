"""Joins are planned so that their state is bounded, where one order or operator has an accordance and another none."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.logical.contract.accordance import accordance
from millstream.logical.contract.offers import Declarations
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.optimizer import optimize
from tests.logical.sample import bind, catalog_of
from tests.tries import tries

STREAMS = """
CREATE STREAM auctions (id BIGINT, seller BIGINT, ts BIGINT) ORDER BY ts PRIMARY KEY (id);
CREATE STREAM bids (auction BIGINT REFERENCES auctions (id), price BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM closed_auctions (id BIGINT, ts BIGINT) ORDER BY ts CLOSES bids (auction) BY (id);
CREATE STREAM clicks (auction BIGINT, page BIGINT, ts BIGINT) ORDER BY ts
    PUNCTUATED ON (auction #) PUNCTUATED ON (ts +);
"""
QUERY = """
SELECT a.id, a.seller, b.price, c.page
FROM auctions a JOIN clicks c ON a.id = c.auction JOIN bids b ON a.id = b.auction
"""


@pytest.mark.parametrize(("grouping", "bounded"), [("auto", True), ("never", True), ("always", False)])
def test_an_order_that_has_an_accordance(grouping: str, bounded: bool) -> None:
    catalog = catalog_of(STREAMS)
    plan = optimize(bind(QUERY, catalog), catalog, multi_join=grouping)
    found = accordance(plan, Declarations.of(catalog))
    assert (found.contract is not None) is bounded, found.unbounded()
    assert plan.schema.names == ("id", "seller", "price", "page")
    if bounded:
        assert "closed_auctions CLOSES bids (auction)" in found.declarations()


def test_one_operator_stays_if_nothing_is_better() -> None:
    columns = "(k BIGINT, v BIGINT)"
    for schemes in ("PUNCTUATED ON (k #)", ""):
        catalog = catalog_of(";".join(f"CREATE STREAM {name} {columns} {schemes}" for name in "abc"))
        query = "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"
        plan = optimize(bind(query, catalog), catalog)
        assert any(isinstance(node, MultiJoin) for node in plan.walk())


ROWS = st.lists(
    st.tuples(st.sampled_from(["auctions", "bids", "clicks", "close"]), st.integers(1, 4), st.integers(0, 9)),
    max_size=25,
)


@settings(max_examples=tries(40))
@given(ROWS)
def test_the_results_are_the_same_and_the_state_is_purged(events: list[tuple[str, int, int]]) -> None:
    results: list[Counter[tuple[object, ...]]] = []
    for grouping in ("always", "auto"):
        mill = LocalMill(Options(multi_join=grouping, contracts="off"))
        mill.execute(f"{STREAMS}; CREATE QUERY q AS {QUERY}")
        closed: set[int] = set()
        known: set[int] = set()
        for time, (stream, key, value) in enumerate(events):
            if stream == "close":
                closed.add(key)
                mill.insert("closed_auctions", [(key, time)])
            elif stream == "auctions":
                known.add(key)
                mill.insert(stream, [(key, value, time)])
            elif key not in closed:
                mill.insert(stream, [(key, value, time)])
            mill.batch()
        for at, key in enumerate(range(1, 5), start=len(events)):
            mill.insert("auctions", [(key, 0, at)] if key not in known else [])
            mill.insert("closed_auctions", [(key, at)])
            mill.punctuate("clicks", f"[auction = {key}]")
        mill.insert("bids", [(99, 0, 100)])  # time moves on
        mill.insert("closed_auctions", [(99, 100)])
        mill.insert("auctions", [(99, 0, 100)])
        mill.punctuate("clicks", "[auction = 99]", "[ts < 101]")
        mill.batch()
        results.append(Counter(mill.take_rows("q").rows()))
    assert results[0] == results[1]
    held = sum(node.state + node.buffered for graph in mill.statistics("q") for node in graph.values())
    assert held <= 3, mill.statistics("q")  # the tuples of auction 99, which time has not passed
