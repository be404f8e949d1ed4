"""Closing against its reference; whole queries over closed streams under cuts, shards and restarts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.observe.stream_progress import stream_progress
from millstream.errors import BindError
from millstream.runtime.closing import Closing
from millstream.runtime.operator.contract import Input
from millstream.testing.runner import LocalHost
from tests.reference.closing import ReferenceClosing
from tests.runtime.driving import Trace, bag, frame
from tests.runtime.ports import LEFT, RIGHT, Arrival, arrivals, cuts, in_order, run, same_promises, steps
from tests.tries import tries

Seen = tuple[Counter[Any], set[Pattern]]
KEYS = ((("k", "k"),), (("x", "y"),), (("k", "k"), ("x", "y")))
SCHEMAS = LEFT, RIGHT


def check(given: Sequence[Arrival], cut: Sequence[bool], keys: tuple[tuple[str, str], ...], merges: bool) -> None:
    model = ReferenceClosing(keys)
    operator = Closing(LEFT, keys, merges)
    for step in steps(given, SCHEMAS, merges, operator.tie_order):
        for port, row in in_order(step, merges):
            model.row(port, row)
        for pattern in step[0].patterns:
            model.promise(pattern)
    trace = run(operator, steps(given, SCHEMAS, merges, operator.tie_order, cut), SCHEMAS)
    assert bag(trace.rows) == bag(model.rows)
    assert operator.late == len(model.late)
    assert same_promises(trace.punctuations, model.patterns), (trace.punctuations, model.patterns)
    late = Closing(LEFT, keys, merges, only_late=True)
    trace = run(late, steps(given, SCHEMAS, merges, late.tie_order, cut), SCHEMAS)
    assert bag(trace.rows) == bag(model.late)
    assert not trace.punctuations


@settings(max_examples=tries(60))
@given(st.data(), cuts, st.sampled_from(KEYS))
def test_merging(data: st.DataObject, cut: Any, keys: tuple[tuple[str, str], ...]) -> None:
    check(data.draw(arrivals(ordered=True, size=30)), cut, keys, True)


@settings(max_examples=tries(60))
@given(st.data(), st.sampled_from(KEYS))
def test_on_arrival(data: st.DataObject, keys: tuple[tuple[str, str], ...]) -> None:
    check(data.draw(arrivals(ordered=False, size=30)), [True], keys, False)


def closing(*ids: int | None, at: int = 0) -> Input:
    return Input(frame(RIGHT, [{"k": k, "y": 0, "ts": at, TS: at} for k in ids]))


def tuples(*keys: int | None, at: int = 0) -> Input:
    return Input(frame(LEFT, [{"ts": at, "k": k, "x": 0, TS: at} for k in keys]))


def test_a_restart_remembers_what_is_closed_and_what_was_late() -> None:
    operator = Closing(LEFT, (("k", "k"),))
    operator.process([Input(), closing(1, 2, 1, None)])
    operator.process([tuples(1, 3), Input()])
    restored = Closing(LEFT, (("k", "k"),))
    restored.restore_scalars(decode(encode(operator.scalars())))
    out = restored.process([tuples(2, None, 3), closing(2, 4)])
    assert out.rows is not None and out.rows["k"].to_list() == [None, 3]
    assert out.punctuations is not None and out.punctuations.patterns() == [Pattern.of(k=equal(4))]
    assert restored.late == 2


def test_closed_integers_that_are_neighbours_are_one() -> None:
    operator = Closing(LEFT, (("k", "k"),))
    ids = list(range(5000))
    random.Random(1).shuffle(ids)
    for first in range(0, len(ids), 100):
        operator.process([Input(), closing(*ids[first : first + 100])])
    assert len(encode(operator.scalars())) < 1000


def test_closed_keys_are_forgotten_when_the_stream_itself_promises_as_much() -> None:
    operator = Closing(LEFT, (("k", "k"),))
    operator.process([Input(), closing(*range(0, 2000, 2))])
    held = len(encode(operator.scalars()))
    operator.process([Input(punctuations=Punctuations.of([Pattern.of(k=below(3000))])), Input()])
    assert len(encode(operator.scalars())) < held / 10
    assert operator.process([Input(), closing(4)]).punctuations is None


def test_texts_close_too_and_nan_closes_nothing() -> None:
    schema = Schema.of(("name", Type.VARCHAR), ("size", Type.DOUBLE))
    operator = Closing(schema, (("name", "name"), ("size", "size")))
    nan = float("nan")
    rows = pl.DataFrame({"name": ["a", "b", None], "size": [1.0, nan, 2.0], TS: [0, 0, 0]}, schema=schema.polars)
    out = operator.process([Input(), Input(rows)])
    assert out.punctuations is not None
    assert out.punctuations.patterns() == [Pattern.of(name=equal("a"), size=equal(1.0))]
    out = operator.process([Input(rows), Input()])
    assert out.rows is not None and out.rows["name"].to_list() == ["b", None]


# --- whole queries ----------------------------------------------------------------------------------------------------

ORDERED = "ORDER BY ts"
REFERENCES = "REFERENCES auctions (id)"  # not true of every bid here: results do not depend on it
CLOCKS = (ORDERED, "WATERMARK FOR ts AS ts - 3", "ORDER BY ts PUNCTUATED ON (ts +)")
QUERIES = {
    "read": "SELECT auction, price FROM bids WHERE price < 8",
    "joined": "SELECT a.id, a.seller, b.price FROM auctions a JOIN bids b ON a.id = b.auction",
    "grouped": "SELECT auction, COUNT(*) AS n, MAX(price) AS top FROM bids GROUP BY auction",
    "by price": "SELECT price, COUNT(*) AS n FROM bids [RANGE 4] GROUP BY price",
    "winning": "SELECT c.id, b.price FROM closed c JOIN bids b ON b.auction = c.id",
    "late": "SELECT auction, price, ts FROM bids__late",
}


class Market:
    """A few auctions, their bids and their ends, in the order of arrival: stream, then row or punctuation."""

    def __init__(self, seed: int, clock: str) -> None:
        self.draw, self.clock = random.Random(seed), clock
        self.events: list[tuple[str, tuple[Any, ...] | str]] = []
        times = {"auctions": 0, "bids": 0, "closed": 0}
        for number in range(self.draw.randrange(4, 40)):
            stream = self.draw.choice(["auctions", "bids", "bids", "bids", "closed"])
            times[stream] += self.draw.randrange(3)
            at, auction = times[stream], self.draw.randrange(6)
            jitter = 0 if clock == ORDERED or stream == "auctions" else self.draw.randrange(3)
            if stream == "auctions":
                self.events.append((stream, (number, f"s{number}", at) if number > 6 else (auction, "s", at)))
            elif stream == "bids":
                self.events.append((stream, (auction, self.draw.randrange(10), at - jitter)))
            else:
                self.events.append((stream, (auction, at - jitter)))
            if "PUNCTUATED" in clock and stream != "auctions" and self.draw.random() < 0.3:
                pattern = f"[*, *, < {at - 2}]" if stream == "bids" else f"[*, < {at - 2}]"
                self.events.append((stream, pattern))
        self.events += [("bids", "[*, *, < 1000]"), ("closed", "[*, < 1000]"), ("auctions", "[*, *, < 1000]")]

    def mill(self, shards: int, query: str, page_rows: int = 3) -> LocalMill:
        mill = LocalMill(Options(shards=shards, page_rows=page_rows))
        mill.execute("CREATE STREAM auctions (id BIGINT, seller VARCHAR, ts BIGINT) ORDER BY ts PRIMARY KEY (id)")
        mill.execute(f"CREATE STREAM bids (auction BIGINT {REFERENCES}, price BIGINT, ts BIGINT) {self.clock}")
        mill.execute(f"CREATE STREAM closed (id INT, ts BIGINT) {self.clock} CLOSES bids (auction) BY (id)")
        mill.add_query("q", query)
        return mill

    def run(
        self, query: str, shards: int, cut: random.Random | None, restart: bool
    ) -> tuple[Counter[Any], set[Pattern]]:
        mill, trace = self.mill(shards, query), Trace()
        for stream, element in self.events:
            if isinstance(element, str):
                mill.punctuate(stream, element)
            else:
                mill.insert(stream, [element])
            if cut is not None and cut.random() < 0.3:
                mill.batch()
                take(mill, trace)
                if restart and cut.random() < 0.3:
                    mill = mill.restarted()
        mill.batch()
        take(mill, trace)
        assert len(trace.punctuations) == len(set(trace.punctuations))
        return bag(trace.rows), set(trace.punctuations)


def take(mill: LocalMill, trace: Trace) -> None:
    """What has come out since; a row that an earlier punctuation excludes is an error."""
    for row in mill.take_rows("q").to_dicts():
        assert not any(pattern.matches(row) for pattern in trace.punctuations), row
        trace.rows.append(row)
    trace.punctuations += mill.take_punctuations("q")


@settings(max_examples=tries(30))
@given(st.integers(0, 10_000), st.sampled_from(CLOCKS), st.sampled_from(sorted(QUERIES)), st.integers(1, 3))
def test_no_cut_shard_or_restart_changes_what_a_reader_sees(seed: int, clock: str, query: str, shards: int) -> None:
    market = Market(seed, clock)
    rows, punctuations = market.run(QUERIES[query], 1, None, restart=False)
    for restart in (False, True):
        found = market.run(QUERIES[query], shards, random.Random(seed), restart)
        assert found[0] == rows
        assert found[1] == punctuations


@settings(max_examples=tries(20))
@given(st.integers(0, 10_000), st.sampled_from(CLOCKS))
def test_every_bid_is_read_or_late(seed: int, clock: str) -> None:
    market = Market(seed, clock)
    seen = [market.run(f"SELECT * FROM {name}", 1, None, restart=False)[0] for name in ("bids", "bids__late")]
    bids = [row for stream, row in market.events if stream == "bids" and not isinstance(row, str)]
    names = ("auction", "price", "ts")
    assert seen[0] + seen[1] == bag([dict(zip(names, row, strict=True)) for row in bids])


def test_on_arrival_without_a_common_time() -> None:
    mill = LocalMill(Options(shards=2))
    mill.execute("CREATE STREAM bids (auction BIGINT, price BIGINT)")
    mill.execute("CREATE STREAM closed (id BIGINT, ts TIMESTAMP) ORDER BY ts CLOSES bids (auction) BY (id)")
    mill.add_query("q", "SELECT auction, COUNT(*) AS n FROM bids GROUP BY auction")
    mill.add_query("late", "SELECT * FROM bids__late")
    mill.insert("bids", [(1, 10), (2, 20)])
    mill.insert("closed", [(1, 5)])
    mill.insert("bids", [(1, 30), (2, 40)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(1, 1)]
    assert mill.take_punctuations("q") == [Pattern.of(auction=equal(1))]
    assert mill.take_rows("late").rows() == [(1, 30)]
    assert sum(node.late for graph in mill.statistics("q") for node in graph.values()) == 1
    assert "on arrival" in mill.execute("EXPLAIN SELECT * FROM bids")


@pytest.mark.parametrize("shards", [1, 2])
def test_the_state_of_a_join_stays_flat_as_auctions_close(shards: int) -> None:
    mill = Market(0, ORDERED).mill(shards, QUERIES["joined"], page_rows=100)
    peak, size = 0, 0
    for start in range(0, 1800, 300):
        numbers = range(start, start + 300)
        mill.insert("auctions", [(n, "s", n) for n in numbers])
        mill.insert("bids", [(n - n % 7, 1, n) for n in numbers if n > 7])
        mill.insert("closed", [(n - 10, n) for n in numbers])
        mill.batch()
        assert mill.take_rows("q").height > 280
        peak = max(peak, mill.state_rows("q"))
        operators = [op for host in mill.hosts("q") for op in host.compiler.operators("q") if isinstance(op, Closing)]
        size = max(size, *(len(encode(operator.scalars())) for operator in operators))
    assert 0 < peak <= 20 and size < 1000
    assert mill.execute(f"EXPLAIN CONTRACT {QUERIES['joined']}").endswith("contract: bounded")
    assert all(operator.late == 0 for operator in operators)


def test_a_stream_that_is_closed_or_closes_is_not_dropped_under_its_readers() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM bids (auction BIGINT)")
    mill.execute("CREATE STREAM closed (id BIGINT) CLOSES bids (auction) BY (id)")
    mill.add_query("q", "SELECT * FROM bids")
    with pytest.raises(BindError, match="'closed' is read by query 'q'"):
        mill.execute("DROP STREAM closed")
    mill.execute("DROP QUERY q")
    with pytest.raises(BindError, match="'bids' is closed by stream 'closed'"):
        mill.execute("DROP STREAM bids")
    mill.execute("CREATE STREAM wide AS SELECT auction FROM bids")
    with pytest.raises(BindError, match="'closed' is read by stream 'wide'"):
        mill.execute("DROP STREAM closed")
    mill.execute("DROP STREAM wide; DROP STREAM closed; DROP STREAM bids")


def test_a_stream_is_closed_by_several() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM bids (auction BIGINT, bidder BIGINT)")
    mill.execute("CREATE STREAM closed (id BIGINT) CLOSES bids (auction) BY (id)")
    mill.execute("CREATE STREAM left_us (who BIGINT) CLOSES bids (bidder) BY (who)")
    mill.add_query("q", "SELECT * FROM bids")
    mill.add_query("late", "SELECT * FROM bids__late")
    mill.insert("closed", [(1,)])
    mill.insert("left_us", [(7,)])
    mill.insert("bids", [(1, 7), (1, 8), (2, 7), (2, 8)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(2, 8)]
    assert set(mill.take_punctuations("q")) == {Pattern.of(auction=equal(1)), Pattern.of(bidder=equal(7))}
    assert sorted(mill.take_rows("late").rows()) == [(1, 7), (1, 8), (2, 7)]


# --- streams that a job reads itself ----------------------------------------------------------------------------------


def files(folder: Path, name: str, header: str, rows: Sequence[tuple[int, ...]], size: int) -> str:
    """Rows as files of a few lines each, read one after the other."""
    place = folder / name
    place.mkdir()
    for number, first in enumerate(range(0, len(rows), size)):
        lines = [",".join(map(str, row)) for row in rows[first : first + size]]
        (place / f"{number:03}.csv").write_text("\n".join([header, *lines]) + "\n")
    return f"WITH (connector = 'csv', path = '{place}', max_files_per_trigger = 1, once = true)"


READ = {
    "top": "SELECT auction, MAX(price) AS top FROM bids GROUP BY auction",
    "winning": "SELECT c.id, b.price FROM closed c JOIN bids b ON b.auction = c.id",
    "late": "SELECT auction, price, ts FROM bids__late",
}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("query", READ)
def test_shards_that_read_a_closed_stream_themselves(tmp_path: Path, query: str, shards: int) -> None:
    draw = random.Random(5)
    bids = [(draw.randrange(30), draw.randrange(100), at) for at in sorted(draw.choices(range(300), k=200))]
    closed = list(zip(range(30), sorted(draw.choices(range(300), k=30)), strict=True))
    ends = dict(closed)
    read = [bid for bid in bids if bid[2] <= ends[bid[0]]]
    bids_from = files(tmp_path, "bids", "auction,price,ts", bids, 30)
    closed_from = files(tmp_path, "closed", "id,ts", closed, 7)
    host = LocalHost()
    mill = host.open(Options(shards=shards))
    mill.execute(f"CREATE STREAM bids (auction BIGINT, price BIGINT, ts BIGINT) ORDER BY ts {bids_from}")
    clauses = f"ORDER BY ts CLOSES bids (auction) BY (id) {closed_from}"
    mill.execute(f"CREATE STREAM closed (id BIGINT, ts BIGINT) {clauses}")
    mill.add_query("q", READ[query])
    mill.drain()
    found, told = Counter(mill.take_rows("q").rows()), mill.take_punctuations("q")
    counted = stream_progress(mill)["closed"]
    tops = {auction: max(price for a, price, _ in read if a == auction) for auction, _, _ in read}
    wanted = {
        "top": Counter(tops.items()),
        "winning": Counter((auction, price) for auction, price, _ in read),
        "late": Counter(bids) - Counter(read),
    }
    assert found == wanted[query]
    assert (counted.accepted, counted.late, counted.bad) == (30, 0, 0)
    assert len(told) == len(set(told))
    if query == "top":
        closing = [pattern.get("auction") for pattern in told if pattern.attributes == {"auction"}]
        assert set(closing) == set(map(equal, ends))


@pytest.mark.parametrize("shards", [1, 3])
def test_late_tuples_of_a_stream_that_shards_read_come_once(tmp_path: Path, shards: int) -> None:
    given = files(tmp_path, "s", "k,ts", [(1, 5), (2, 7), (3, 6), (4, 9), (5, 1)], 3)
    host = LocalHost()
    mill = host.open(Options(shards=shards))
    mill.execute(f"CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts {given}")
    mill.add_query("q", "SELECT k FROM s__late UNION ALL SELECT k FROM s")
    mill.drain()
    found = sorted(mill.take_rows("q").rows())
    assert found == [(1,), (2,), (3,), (4,), (5,)]
