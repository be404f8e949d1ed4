"""Queries that need one key first and another one later: their cuts, which do not change the results."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.mill.base import Mill
from millstream.physical.plan.exchange import Exchange, Gather
from millstream.physical.plan.stages import QueryPart, depth, parts
from millstream.testing.runner import LocalHost
from tests.paths import GOLDEN
from tests.tries import tries

STREAMS = """
    CREATE STREAM a (id BIGINT, seller BIGINT, ts BIGINT) ORDER BY ts;
    CREATE STREAM b (auction BIGINT, bidder BIGINT, price BIGINT, ts BIGINT) ORDER BY ts;
    CREATE STREAM p (id BIGINT, city VARCHAR, ts BIGINT) ORDER BY ts;
    CREATE TABLE c (seller BIGINT, name VARCHAR);
"""
SOLD = "a [RANGE 10] JOIN b [RANGE 10] ON a.id = b.auction"


def cut(query: str, shards: int = 2) -> list[QueryPart]:
    mill = LocalMill()
    mill.execute(STREAMS)
    mill.add_query("q", query)
    return parts("q", mill.queries["q"].plan, shards)


def test_a_query_with_one_key_is_not_cut() -> None:
    (only,) = cut(f"SELECT a.id, b.price FROM {SOLD}")
    assert only.stage == 0 and only.reader is None
    assert only.keys == {"a": ("id",), "b": ("auction",)}


def test_an_aggregate_by_another_key_than_the_join_below() -> None:
    query = f"SELECT seller, COUNT(*) AS n FROM (SELECT a.seller AS seller FROM {SOLD}) AS j [RANGE 5] GROUP BY seller"
    top, join = cut(query)
    assert (top.stage, join.stage) == (1, 0)
    assert join.keys == {"a": ("id",), "b": ("auction",)} and join.reader == "q" and join.key == ("seller",)
    assert top.keys == {"@q/0.0": ("seller",), "@q/0.1": ("seller",)}
    assert isinstance(join.plan, Exchange) and any(isinstance(part, Gather) for part in top.plan.walk())


def test_a_stream_goes_through_the_first_stage_to_meet_its_output() -> None:
    top, *below = cut(f"SELECT b.price, p.city FROM {SOLD} JOIN p [RANGE 10] ON b.bidder = p.id")
    assert [(part.stage, part.key, part.keys is not None) for part in below] == [
        (0, ("b.bidder",), True),
        (0, ("id",), True),
    ]
    assert top.stage == 1


def test_three_keys_make_three_stages() -> None:
    query = (
        "SELECT city, COUNT(*) AS n FROM (SELECT p.city AS city FROM "
        f"{SOLD} JOIN p [RANGE 10] ON b.bidder = p.id) AS j [RANGE 5] GROUP BY city"
    )
    made = cut(query)
    assert depth(made) == 3 and [part.stage for part in made] == [2, 1, 0, 0]
    assert [part.reader for part in made] == [None, "q", "q/0", "q/0"]


def test_an_aggregate_of_everything_runs_on_one_shard_and_the_join_below_on_many() -> None:
    top, join = cut(f"SELECT COUNT(*) AS n FROM (SELECT b.price AS price FROM {SOLD}) AS j [RANGE 5]")
    assert top.keys is None and top.stage == 1
    assert join.keys is not None and join.key is None


def test_a_stream_joined_with_itself_on_two_columns_is_sent_twice() -> None:
    top, *below = cut("SELECT x.id, y.ts FROM a AS x [RANGE 9] JOIN a AS y [RANGE 9] ON x.id = y.seller")
    assert sorted(part.key or () for part in below) == [("id",), ("seller",)]
    assert top.stage == 1


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT x.seller FROM (SELECT a.seller AS seller, a.ts AS ts FROM {SOLD}) AS x [ROWS 2] "
        "JOIN p [ROWS 2] ON x.seller = p.id",
        "SELECT COUNT(*) AS n FROM a [RANGE 5]",
    ],
)
def test_queries_that_depend_on_positions_or_gain_nothing_run_on_one_shard(query: str) -> None:
    (only,) = cut(query)
    assert only.keys is None and only.stage == 0


def test_explain_shows_the_stages() -> None:
    host = LocalHost()
    mill = host.open(Options(shards=2))
    mill.execute(STREAMS)
    text = mill.execute(
        "EXPLAIN PHYSICAL SELECT seller, COUNT(*) AS n "
        f"FROM (SELECT a.seller AS seller FROM {SOLD}) AS j [RANGE 5] GROUP BY seller"
    )
    path = GOLDEN / "stages.physical.txt"
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


# --- results ----------------------------------------------------------------------------------------------------------


KINDS = {
    "ordered": "ORDER BY ts",
    "punctuated": "ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #)",
    "watermarked": "ORDER BY ts WATERMARK FOR ts AS ts - 3",
}
JOINS = [
    "s1 AS x [RANGE 4] JOIN s2 AS y [RANGE 6] ON x.k = y.k",
    "s1 AS x JOIN s2 AS y ON x.k = y.k",
    "s1 AS x [RANGE 4] JOIN (SELECT k, v, ts FROM s2 WHERE v > 1) AS y ON x.k = y.k",
]
SHAPES = [
    "SELECT window_end, v, COUNT(*) AS n, SUM(w) AS s FROM (SELECT x.v AS v, y.v AS w FROM {join}) AS j "
    "[RANGE {size} SLIDE {slide}] GROUP BY v",
    "SELECT window_end, COUNT(*) AS n FROM (SELECT x.v AS v FROM {join}) AS j [RANGE {size} SLIDE {slide}]",
    "SELECT x.k, x.v, z.k AS l FROM {join} JOIN s1 AS z [RANGE 5] ON y.v = z.v",
    "SELECT x.v, y.k FROM s1 AS x [RANGE 5] JOIN s1 AS y [RANGE 5] ON x.k = y.v",
    "SELECT DISTINCT v FROM (SELECT x.v AS v, y.k AS k FROM {join}) AS j",
    "SELECT g.n, y.v FROM (SELECT window_end, v, COUNT(*) AS n FROM s1 [RANGE {size} SLIDE {size}] GROUP BY v) AS g "
    "[RANGE 8] JOIN s2 AS y [RANGE 8] ON g.n = y.k",
    "SELECT v, n FROM (SELECT v, COUNT(*) AS n FROM s1 [RANGE {size}] GROUP BY v) AS g "
    "UNION ALL SELECT n AS v, k AS n FROM (SELECT k, COUNT(*) AS n FROM s2 [RANGE {size}] GROUP BY k) AS h",
]


@dataclass(frozen=True)
class Case:
    kinds: tuple[str, str]
    query: str
    elements: tuple[tuple[str, str], ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kinds = (draw(st.sampled_from(sorted(KINDS))), draw(st.sampled_from(sorted(KINDS))))
    size, slide = draw(st.sampled_from([(5, 5), (6, 2)]))
    query = draw(st.sampled_from(SHAPES)).format(join=draw(st.sampled_from(JOINS)), size=size, slide=slide)
    elements: list[tuple[str, str]] = []
    now = 0
    for _ in range(draw(st.integers(0, 30))):
        number = draw(st.integers(0, 1))
        now += draw(st.integers(0, 3))
        jitter = 0 if kinds[number] == "ordered" else draw(st.integers(-3, 0))
        row = f"{draw(st.sampled_from(['0', '1', '2', 'NULL']))} | {draw(st.integers(0, 4))} | {now + jitter}"
        closing = draw(st.sampled_from(["", "", "", f"[*, *, < {now - 3}]", f"[{draw(st.integers(0, 2))}, *, *]"]))
        elements.append((f"s{number + 1}", closing if closing and kinds[number] == "punctuated" else row))
    return Case(kinds, query, tuple(elements))


def begin(mill: Mill, case: Case) -> None:
    for number, kind in enumerate(case.kinds, 1):
        mill.execute(f"CREATE STREAM s{number} (k BIGINT, v BIGINT, ts BIGINT) {KINDS[kind]}")
    mill.add_query("q", case.query)


def taken(mill: Mill, rows: Counter[object], said: Counter[str]) -> None:
    rows.update(mill.take_rows("q").rows())
    said.update(map(str, mill.take_punctuations("q")))


def fed(mill: Mill, case: Case, host: LocalHost | None, seed: int) -> tuple[Counter[object], Counter[str], int]:
    """Rows and punctuations as bags and the state at the end, with batches cut and mills recovered at random."""
    chance = random.Random(seed)
    rows: Counter[object] = Counter()
    said: Counter[str] = Counter()
    for stream, line in [*case.elements, ("s1", "[*, *, < 10000]"), ("s2", "[*, *, < 10000]")]:
        mill.feed_line(stream, line)
        if host is not None and chance.random() < 0.3:
            mill.batch()
            taken(mill, rows, said)
            if chance.random() < 0.3:
                mill = host.restart(mill)
    mill.batch()
    taken(mill, rows, said)
    return rows, said, mill.state_rows("q")


@given(
    cases(), st.integers(0, 1000), st.integers(2, 3), st.booleans(), st.sampled_from(["demand", "none", "punctuation"])
)
@settings(max_examples=tries(60))
def test_stages_do_not_change_the_results(case: Case, seed: int, shards: int, cached: bool, ets: str) -> None:
    whole = LocalMill(Options(ets=ets))
    begin(whole, case)
    rows, _, state = fed(whole, case, None, 0)
    host = LocalHost(cached=cached)
    mill = host.open(Options(shards=shards, ets=ets))
    begin(mill, case)
    assert mill.job("q").stages >= 2
    found = fed(mill, case, host, seed)
    assert found[0] == rows
    assert found[2] == state
