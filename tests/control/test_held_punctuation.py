"""Punctuation that a join holds back closes groups at the same look on any number of shards, and costs no stage where
it need not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.physical.plan.stages import depth
from tests.control.invariance.cases import Case, cases, outcome
from tests.control.invariance.queries import HELD
from tests.tries import rotated, tries

PUNCTUATED = "ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #)"
RISING = "ORDER BY ts PUNCTUATED ON (k +)"
ORDERED = "ORDER BY ts"
KEYS = range(1, 7)
CLOSED_ONE_BY_ONE = [
    *(("x", f"{k} | 1 | 1") for k in KEYS),
    *(("y", f"{k} | 1 | 1") for k in KEYS),
    ("y", "[*, *, < 9]"),
    *(("x", f"[{k}, *, *]") for k in KEYS),
]
EXPIRED_ONE_BY_ONE = [
    *(("y", f"{k} | 1 | {2 * k}") for k in KEYS),
    *(("x", f"{k} | 1 | 12") for k in KEYS),
    ("y", "[< 9, *, *]"),
    *(("x", f"9 | 1 | {ts}") for ts in range(13, 20)),
]
VALUES_CLOSED = [
    *(("x", f"{k} | 1 | 1") for k in KEYS),
    *(("y", f"{k} | {k % 3} | 1") for k in KEYS),
    ("y", "[*, 1, *]"),
    ("y", "[*, {0, 2}, *]"),
    *(("x", f"[{k}, *, *]") for k in KEYS),
]
COVERED = [  # a shard without tuples of key 5 has emitted other punctuation that covers the last one
    ("x", "5 | 2 | 6"),
    ("y", "5 | 3 | 2"),
    ("y", "[{0, 1}, *, *]"),
    ("x", "[5, *, *]"),
    ("y", "[{1, 5}, {1, 3}, *]"),
]
RANGE_CLOSED = [
    *(("x", f"{k} | 1 | 1") for k in KEYS),
    *(("y", f"{k} | 1 | 1") for k in KEYS),
    ("y", "[< 4, *, *]"),
    ("y", "[< 6, *, *]"),
    *(("x", f"[{k}, *, *]") for k in KEYS),
    ("x", "[< 9, *, *]"),
]
ENDED = [
    *(("x", f"{k} | 1 | 1") for k in KEYS),
    *(("y", f"{k} | {k % 3} | {k}") for k in KEYS),
    ("y", "end"),
    *(("x", f"[{k}, *, *]") for k in KEYS),
    *(("x", f"9 | 1 | {ts}") for ts in range(3, 20)),
    ("x", "end"),
]
JOIN = "FROM x JOIN y ON x.k = y.k"
BRIEF = "FROM x [RANGE 5] JOIN y [RANGE 5] ON x.k = y.k"
BOTH = "x.k AS k, y.v AS v, y.ts AS t"


def looks(clause: str, query: str, elements: list[tuple[str, str]], shards: int) -> list[tuple[list, int]]:
    """The rows and the size of the state after each element."""
    mill = begun(clause, query, shards)
    found = []
    for stream, line in elements:
        mill.feed_line(stream, line)
        mill.batch()
        found.append((sorted(mill.take_rows("q").rows()), mill.state_rows("q")))
    return found


def begun(clause: str, query: str, shards: int) -> LocalMill:
    mill = LocalMill(Options(shards=shards, contracts="off"), jobs=LocalJobs(shards=shards))
    for name in ("x", "y", "z"):
        own = ORDERED if clause == RISING and name == "x" else clause
        mill.execute(f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) {own}")
    mill.add_query("q", query)
    return mill


@pytest.mark.parametrize(
    ("case", "shards"),
    rotated(
        [
            (PUNCTUATED, f"SELECT x.k, y.ts, COUNT(*) AS n {JOIN} GROUP BY x.k, y.ts", CLOSED_ONE_BY_ONE),
            (PUNCTUATED, f"SELECT DISTINCT x.k, y.ts {JOIN}", CLOSED_ONE_BY_ONE),
            (
                PUNCTUATED,
                f"SELECT window_end, k, COUNT(*) AS n FROM (SELECT {BOTH} {JOIN}) AS j [RANGE 5 ON t] GROUP BY k",
                CLOSED_ONE_BY_ONE,
            ),
            (RISING, f"SELECT x.k, COUNT(*) AS n {BRIEF} GROUP BY x.k", EXPIRED_ONE_BY_ONE),
            # Not declared: no stage is cut for it, the shards agree on it.
            (ORDERED, f"SELECT x.k, y.v, COUNT(*) AS n {JOIN} GROUP BY x.k, y.v", VALUES_CLOSED),
            (ORDERED, f"SELECT DISTINCT x.k, y.v {JOIN}", VALUES_CLOSED),
            (ORDERED, f"SELECT x.k, y.v, COUNT(*) AS n {JOIN} GROUP BY x.k, y.v", COVERED),
            (ORDERED, f"SELECT y.v, COUNT(*) AS n {JOIN} JOIN z ON y.v = z.k GROUP BY y.v", VALUES_CLOSED),
            (ORDERED, f"SELECT x.k, z.v, COUNT(*) AS n {JOIN} JOIN z ON y.v = z.k GROUP BY x.k, z.v", VALUES_CLOSED),
            (ORDERED, f"SELECT x.k, COUNT(*) AS n {JOIN} GROUP BY x.k", RANGE_CLOSED),
            (ORDERED, f"SELECT x.k, y.v, COUNT(*) AS n {JOIN} GROUP BY x.k, y.v", ENDED),
            (ORDERED, f"SELECT x.k, COUNT(*) AS n {BRIEF} GROUP BY x.k", EXPIRED_ONE_BY_ONE),
            (ORDERED, f"SELECT x.k, COUNT(*) AS n {BRIEF} GROUP BY x.k", ENDED),
            (
                ORDERED,
                f"SELECT j.k, j.v, z.v AS u, COUNT(*) AS n FROM (SELECT {BOTH} {JOIN}) AS j JOIN z ON j.k = z.k "
                "GROUP BY j.k, j.v, z.v",
                [*(("z", f"{k} | {k % 3} | 1") for k in KEYS), *VALUES_CLOSED, ("z", "[*, 1, *]"), ("z", "[3, *, *]")],
            ),
            (
                ORDERED,
                f"SELECT k, v, COUNT(*) AS n, SUM(m) AS m FROM (SELECT x.k AS k, y.v AS v, COUNT(*) AS m {JOIN} "
                "GROUP BY x.k, y.v) AS g GROUP BY k, v",
                VALUES_CLOSED,
            ),
        ],
        [2, 4],
        keep=1,
    ),
)
def test_a_look_finds_the_same_on_any_number_of_shards(
    case: tuple[str, str, list[tuple[str, str]]], shards: int
) -> None:
    assert looks(*case, shards) == looks(*case, 1)


@given(cases(HELD), st.integers(1, 1000), st.integers(2, 3))
@settings(max_examples=tries(30))
def test_random_queries_find_the_same(case: Case, seed: int, shards: int) -> None:
    rows, _, state, _ = outcome(case, Options(), 0)
    found = outcome(case, Options(shards=shards), seed)
    assert (found[0], found[2]) == (rows, state)


@pytest.mark.parametrize(
    ("clause", "query", "stages"),
    [
        # A window over time closes by time, which no join holds back; single values of the key are on one shard.
        (PUNCTUATED, f"SELECT x.k, x.v, y.v AS w, y.ts {BRIEF}", 1),
        (PUNCTUATED, f"SELECT x.k, COUNT(*) AS n {JOIN} GROUP BY x.k", 1),
        (PUNCTUATED, f"SELECT window_end, k, COUNT(*) AS n FROM (SELECT {BOTH} {JOIN}) AS j [RANGE 5] GROUP BY k", 1),
        (PUNCTUATED, "SELECT window_end, k, COUNT(*) AS n FROM x [RANGE 10] GROUP BY k", 1),
        (PUNCTUATED, f"SELECT x.k, y.v, z.v AS u {JOIN} JOIN z ON z.k = y.k", 1),
        (PUNCTUATED, f"SELECT DISTINCT x.k, y.v {JOIN}", 1),
        (ORDERED, f"SELECT x.k, y.v, COUNT(*) AS n {JOIN} GROUP BY x.k, y.v", 1),
        (ORDERED, f"SELECT DISTINCT x.k, y.ts {JOIN}", 2),
        (PUNCTUATED, f"SELECT x.k, y.ts, COUNT(*) AS n {JOIN} GROUP BY x.k, y.ts", 2),
        (RISING, f"SELECT x.k, COUNT(*) AS n {JOIN} GROUP BY x.k", 2),
    ],
)
def test_only_what_reads_held_punctuation_is_in_a_later_stage(clause: str, query: str, stages: int) -> None:
    mill = begun(clause, query, 2)
    assert depth([made.part for made in mill.prepare("q", mill.query("q").plan)]) == stages


def test_the_workloads_of_the_benchmarks_need_one_stage() -> None:
    mill = LocalMill(Options(shards=2))
    late = "WATERMARK FOR ts AS ts - INTERVAL 4 SECONDS"
    mill.execute(f"CREATE STREAM bid (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts {late}")
    mill.execute(f"CREATE STREAM auction (id BIGINT PRIMARY KEY, category BIGINT, ts TIMESTAMP) ORDER BY ts {late}")
    join = "FROM bid b JOIN auction a ON b.auction = a.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS"
    bids = f"(SELECT a.id AS id, b.price AS price {join}) AS j"
    queries = {
        "w1": "SELECT window_start, auction, COUNT(*) AS n FROM bid [RANGE 10 SECONDS] GROUP BY auction",
        "w2": f"SELECT b.auction, b.price, a.category, b.ts {join}",
        "highest": f"SELECT window_end, id, MAX(price) AS price FROM {bids} [RANGE 10 SECONDS] GROUP BY id",
        "winners": f"SELECT id, MAX(price) AS price FROM {bids} GROUP BY id",
    }
    for name, query in queries.items():
        mill.add_query(name, query)
        assert depth([made.part for made in mill.prepare(name, mill.query(name).plan)]) == 1
