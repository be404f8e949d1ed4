"""Partial aggregation before the exchange: the split plan emits what the whole plan emits."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import TS
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.logical.explain import explain
from millstream.logical.plan import Plan
from millstream.physical.plan.partial import PartialSplit, split_aggregate
from millstream.physical.plan.partitioning import partition_keys
from tests.physical.plan.partial_run import SplitRun
from tests.tries import tries

COLUMNS = "k BIGINT, v BIGINT, d DOUBLE, name VARCHAR, ts BIGINT"
KINDS = {
    "ordered": "ORDER BY ts",
    "punctuated": "ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #) PUNCTUATED ON (ts +, k #)",
    "watermarked": "ORDER BY ts WATERMARK FOR ts AS ts - 3",
    "latent": "",
}
CALLS = [
    "COUNT(*)", "COUNT(v)", "SUM(v)", "AVG(v)", "MIN(v)", "MAX(d)", "SUM(d)", "MIN(name)", "MAX(ts)", "SUM(v * 2 + k)",
    "COUNT(*) FILTER (WHERE v > 1)", "SUM(d) FILTER (WHERE name = 'a')", "BOOL_OR(v > 2)", "VAR_POP(v) > 1.1",
]  # fmt: skip
SECOND = 1_000_000


@dataclass(frozen=True)
class Case:
    kind: str
    query: str
    batches: tuple[tuple[str, ...], ...]
    paned: bool
    shards: int
    seed: int


@st.composite
def queries(draw: st.DrawFn) -> str:
    group = draw(st.sampled_from(["", "k", "k", "name", "k, name", "v % 3", "k, v > 2"]))
    window = draw(st.sampled_from(["RANGE 5", "RANGE 6 SLIDE 2", "RANGE 7 SLIDE 3", "RANGE 2 SLIDE 5", "RANGE 1"]))
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=5, unique=True))
    ends = draw(st.sampled_from([["window_end"], ["window_start", "window_end"], []]))
    source = draw(st.sampled_from(["s", "s", "(SELECT k, v, d, name, ts FROM s WHERE d < 4 OR d IS NULL) AS x"]))
    where = draw(st.sampled_from(["", "", "WHERE v > 1", "WHERE v + k <> 3 AND name <> 'b'"]))
    having = draw(st.sampled_from(["", "", "HAVING COUNT(*) > 1", "HAVING SUM(v) > 3"]))
    by = f"GROUP BY {group}" if group else ""
    items = [*ends, *([group] if group else []), *calls]
    named = ", ".join(f"{item} AS c{place}" for place, item in enumerate(", ".join(items).split(", ")))
    return f"SELECT {named} FROM {source} [{window}] {where} {by} {having}"


def _line(random: Random, kind: str, now: int) -> str:
    if kind == "punctuated" and random.random() < 0.3:
        key = random.choice([0, 1, 2, 9])
        old = now - random.randint(3, 9)
        restrictions = [("*", "*", f"< {old}"), (key, "*", "*"), (key, "*", f"<= {old}"), ("*", key, f"< {old}")]
        k, v, ts = random.choice(restrictions)
        return f"[{k}, {v}, *, *, {ts}]"
    ts = now if kind == "ordered" else now - random.randint(0, 3)
    k, v, d = (random.choice([*options, "NULL"]) for options in ([0, 1, 2], [0, 1, 2, 3, 5], [0.25, 3.5, 8]))
    return f"{k} | {v} | {d} | {random.choice(['a', 'b', 'NULL'])} | {ts}"


def _batches(random: Random, kind: str, size: int) -> tuple[tuple[str, ...], ...]:
    """Lines in batches; time may run before the epoch."""
    made: list[list[str]] = [[]]
    now = random.choice([-12, 0])
    for _ in range(size):
        now += random.choice([0, 0, 1, 1, 2, 6])
        made[-1].append(_line(random, kind, now))
        if random.random() < 0.2:
            made.append([])
    return tuple(map(tuple, made))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(sorted(KINDS)))
    random = draw(st.randoms(use_true_random=True))
    batches = _batches(random, kind, draw(st.sampled_from([0, 5, 30, 60])))
    seed = random.randint(0, 1 << 30)
    return Case(kind, draw(queries()), batches, draw(st.booleans()), draw(st.sampled_from([1, 1, 3])), seed)


def started(kind: str, query: str, *, paned: bool = True) -> LocalMill:
    mill = LocalMill(Options(paned=paned))
    mill.execute(f"CREATE STREAM s ({COLUMNS}) {KINDS[kind]}")
    mill.add_query("q", query)
    return mill


def whole(mill: LocalMill) -> tuple[Counter[Any], Counter[str], int]:
    rows, said = Counter(mill.take_rows("q").rows()), Counter(map(str, mill.take_punctuations("q")))
    return rows, said, mill.state_rows("q")


@given(cases())
@settings(max_examples=tries(80))
def test_a_split_plan_emits_what_the_whole_plan_emits(case: Case) -> None:
    mill = started(case.kind, case.query, paned=case.paned)
    parted = SplitRun(mill, case.shards, Random(case.seed))
    for batch in case.batches:
        for line in batch:
            mill.feed_line("s", line)
        mill.batch()
        parted.feed(list(batch))
        if case.kind == "latent":
            mill.advance(2 * SECOND)
            parted.advance(2 * SECOND)
        expected, found = whole(mill), parted.outcome()
        assert found[0] == expected[0]
        assert len(parted.graphs) > 1 or found[1] == expected[1]
        assert found[2] == expected[2]


def plan_of(query: str, kind: str = "ordered", *, paned: bool = True) -> Plan:
    return started(kind, query, paned=paned).query("q").plan


def parted(query: str, kind: str = "ordered", *, paned: bool = True) -> PartialSplit:
    made = split_aggregate(plan_of(query, kind, paned=paned))
    assert made is not None
    return made


def page(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Tuples (k, v, ts) as a page of the stream."""
    types = {"k": pl.Int64, "v": pl.Int64, "ts": pl.Int64}
    made = pl.DataFrame(list(rows), schema=types, orient="row")
    return made.with_columns(pl.lit(None, pl.Float64).alias("d"), pl.lit("x").alias("name"), pl.col("ts").alias(TS))


def test_columns_read_and_columns_sent() -> None:
    made = parted("SELECT window_start, k, COUNT(*) AS n, AVG(v) AS a FROM s [RANGE 10] WHERE d > 1 GROUP BY k")
    assert (made.stream, made.partial.columns) == ("s", {"k", "v", "d", "ts"})
    (stream,) = partition_keys(made.plan) or {}
    assert stream.startswith("s~") and partition_keys(made.plan) == {stream: ("k",)}
    assert made.partial.group == ("k",)
    assert set(made.partial.schema.names) >= {"k", "count", "avg_v__sum", "avg_v__count"}
    assert "AVG(v) AS avg_v of partials" in explain(made.plan) and f"Scan {stream}" in explain(made.plan)
    again = parted("SELECT window_start, k, COUNT(*) AS n, AVG(v) AS a FROM s [RANGE 10] WHERE d > 1 GROUP BY k")
    assert again == made and hash(again) == hash(made)


def test_a_computed_group_can_be_hashed_on() -> None:
    query = "SELECT k % 4 AS b, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k % 4"
    assert partition_keys(plan_of(query)) is None
    made = parted(query)
    assert list((partition_keys(made.plan) or {}).values()) == [made.partial.group]


def test_windows_with_the_same_panes_share_a_partial_stream() -> None:
    one, other = (parted(f"SELECT window_end, SUM(v) AS t FROM s [RANGE {r} SLIDE 20]") for r in (40, 60))
    assert one.partial == other.partial and one.plan != other.plan
    tumbling = parted("SELECT window_end, SUM(v) AS t FROM s [RANGE 20]")
    assert tumbling.partial == one.partial


def test_rows() -> None:
    partial = parted("SELECT k, COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS t FROM s [RANGE 10] GROUP BY k").partial
    made = partial.rows(page((1, 5, 3), (None, 2, 4), (1, None, 8), (None, None, 9), (2, None, 12)))
    assert made.sort(TS, "k", nulls_last=True).select("k", "count", "count_v", "sum_v", TS).rows() == [
        (1, 2, 1, 5, 3),
        (None, 2, 1, 2, 4),
        (2, 1, 0, None, 12),
    ]
    assert made.get_column(TS).is_sorted()
    empty = partial.rows(page())
    assert not empty.height and dict(empty.schema) == partial.schema.polars
    assert pickle.loads(pickle.dumps(partial)) == partial


def test_tuples_in_no_window_are_not_sent() -> None:
    partial = parted("SELECT window_end, COUNT(*) AS n FROM s [RANGE 2 SLIDE 10]").partial
    assert partial.rows(page((1, 1, 3), (1, 1, 8), (1, 1, 9), (1, 1, 17))).select("count", TS).rows() == [(2, 8)]
    assert not partial.rows(page((1, 1, 3))).height


def test_punctuation_that_can_close_groups_passes() -> None:
    partial = parted("SELECT k, COUNT(*) AS n FROM s [RANGE 10] WHERE v > 1 GROUP BY k", "punctuated").partial
    patterns = [
        Pattern.of(ts=below(3)),
        Pattern.of(v=equal(2)),
        Pattern.of(ts=below(12)),
        Pattern.of(ts=below(14)),
        Pattern.of(k=equal(1)),
        Pattern.of(k=equal(1), ts=below(14)),
        Pattern.of(ts=below(31)),
    ]
    told = partial.pass_on(Punctuations.of(patterns, 31))
    assert told.progress == 31
    assert told.patterns() == [patterns[place] for place in (0, 2, 4, 5, 6)]
    assert partial.pass_on(Punctuations.of((), 7)) == Punctuations.of((), 7)


def test_one_aggregate_after_the_other() -> None:
    counts = "SELECT window_end AS e, k, COUNT(*) AS n FROM s [RANGE {}] GROUP BY k"
    pair = f"({counts.format(10)}) a [RANGE 20], ({counts.format(20)}) b [RANGE 20]"
    query = f"SELECT a.k, a.n, b.n AS m FROM {pair} WHERE a.k = b.k"
    first = parted(query)
    second = split_aggregate(first.plan)
    assert second is not None and second.partial != first.partial
    assert split_aggregate(second.plan) is None
    assert set((partition_keys(second.plan) or {}).values()) == {("k",)}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, v FROM s WHERE v > 1",
        "SELECT k, COUNT(*) AS n FROM s GROUP BY k",
        "SELECT ts, COUNT(*) AS n FROM s [RANGE 10] GROUP BY ts",
        "SELECT k, COUNT(*) AS n FROM s [RANGE 10 ON v] GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT k, ts FROM s) AS x [RANGE 10] GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM s [RANGE 100000 SLIDE 7] GROUP BY k",
    ],
)
def test_aggregates_that_are_not_split(query: str) -> None:
    assert split_aggregate(plan_of(query, "punctuated", paned=False)) is None


def test_aggregates_with_clashing_names_are_not_split() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT, count BIGINT) ORDER BY count PUNCTUATED ON (count +)")
    mill.add_query("q", "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k")
    assert split_aggregate(mill.query("q").plan) is None
