"""User-defined aggregates in queries against their interpreter, for every frame, kind of time, cut and shard count."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import PlanError
from millstream.logical.bind import over as binding
from millstream.runtime.over import row_frames
from tests.reference.aggregates import FOLDS, PROGRAMS
from tests.runtime.over.test_over import FRAMES, PARTITIONS, canonical, results_of, rows_of
from tests.time_kinds import KINDS
from tests.tries import tries

CALLS = {
    "avg": "avg(w)",
    "total": "total(v)",
    "myavg": "myavg(w)",
    "largest": "largest(w)",
    "greatest_known": "greatest_known(w)",
    "spread": "spread(v, w)",
    "recent": "recent(v)",
    "pruned": "pruned(v, name)",
    "chosen": "chosen(v, name)",
    "tops": "tops(v, w)",
    "decay": "decay(w)",
    "counts": "counts(name, v)",
}
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking, which takes minutes."""
MANY = st.sampled_from([1, row_frames.MANY])
"""Number of tuples from which on they are taken by partition."""
BASE = ("decay", "counts")
NO_EXPIRY = ("recent", "largest", "pruned")
"""Aggregates whose EXPIRE returns nothing."""


def compiled(*_: object) -> None:
    """Recognise nothing."""


@pytest.mark.parametrize("kind", ["ordered", "watermarked", "punctuated", "latent"])
@settings(max_examples=tries(40), deadline=None, phases=PHASES)
@given(
    calls=st.lists(st.sampled_from(list(CALLS)), min_size=1, max_size=2),
    frame=st.sampled_from(FRAMES),
    by=st.sampled_from(PARTITIONS),
    seed=st.integers(0, 10_000),
    shards=st.sampled_from([1, 3]),
    page=st.sampled_from([1, 3, 8192]),
    many=MANY,
)
def test_results_equal_the_reference(
    kind: str, calls: list[str], frame: str, by: str, seed: int, shards: int, page: int, many: int
) -> None:
    if "ACTIVE" in frame and set(calls) & {*NO_EXPIRY}:
        return
    items = ", ".join(f"{CALLS[call]} OVER ({by}{frame})" for call in calls)
    query = f"SELECT ts, k, {items} FROM s WHERE v IS NULL OR v > -10"
    options = Options(shards=shards, page_rows=page)
    with patch.object(binding, "recognised", compiled), patch.object(row_frames, "MANY", many):
        found, meant = results_of(query, kind, rows_of(seed, kind), options, seed, before=PROGRAMS)
    assert found == meant


RECOGNISED = {
    "avg": "avg(w)",
    "total": "total(v)",
    "myavg": "myavg(w)",
    "sums": "sums(v, w)",
    "highest": "highest(v)",
    "least_known": "least_known(v)",
    "ends": "ends(v, w)",
    "required": "top(n)",
    "mean_n": "mean_n(n)",
    "decay": "decay_avg(w)",
    "decay_n": "decay_avg(n)",
}


@pytest.mark.parametrize("call", list(RECOGNISED))
@settings(max_examples=tries(20), deadline=None, phases=PHASES)
@given(
    frame=st.sampled_from([*FRAMES, "BASE"]),
    by=st.sampled_from(PARTITIONS),
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["ordered", "watermarked"]),
)
def test_a_body_on_columns_equals_the_compiled_one(call: str, frame: str, by: str, seed: int, kind: str) -> None:
    over = f" OVER ({by}{frame})" if frame != "BASE" else ""
    query = f"SELECT ts, k, {RECOGNISED[call]}{over} FROM s"
    rows = rows_of(seed, kind)
    try:
        with patch.object(binding, "recognised", compiled):
            meant = emitted(query, kind, rows)
    except PlanError:
        return  # blocking, or without a row on expiry
    assert emitted(query, kind, rows) == meant


def emitted(query: str, kind: str, rows: list[tuple[Any, ...]]) -> Counter[Any]:
    mill = LocalMill(Options(shards=1))
    columns = "ts BIGINT, k BIGINT, v BIGINT, w DOUBLE, x DOUBLE, name VARCHAR, n BIGINT NOT NULL"
    mill.execute(f"CREATE STREAM s ({columns}) {KINDS[kind].replace('PUNCTUATED ON (k #)', '')}")
    mill.execute(PROGRAMS + FOLDS)
    mill.add_query("q", query)
    mill.insert("s", [(*row, position * 37 % 11) for position, row in enumerate(rows)])
    mill.feed_line("s", "[*, *, *, *, *, *, *]")
    mill.batch()
    return Counter(map(canonical, mill.take_rows("q").rows()))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("avg(n) OVER (ROWS 3 PRECEDING)", "[avg on columns (sum, count)]"),
        ("mean_n(n) OVER (ROWS 3 PRECEDING)", "[mean_n on columns (sum, count)]"),
        ("top(n) OVER (RANGE 3 PRECEDING)", "[top on columns (max)]"),
        ("top(v) OVER (RANGE 3 PRECEDING)", "compiled"),
        ("highest(v) OVER (UNBOUNDED PRECEDING)", "[highest on columns (max, first)]"),
        ("sums(n, n)", "[sums on columns (sum, count, sum)]"),
        ("recent(v) OVER (ROWS 3 PRECEDING)", "compiled"),
        ("decay_avg(n)", "[decay_avg on columns (decay_sum, first, count)]"),
    ],
)
def test_explain_says_how_a_body_runs(call: str, said: str) -> None:
    mill = LocalMill(Options(shards=1))
    mill.execute("CREATE STREAM s (ts BIGINT, v BIGINT, n BIGINT NOT NULL) ORDER BY ts")
    mill.execute(PROGRAMS + FOLDS)
    assert said in str(mill.execute(f"EXPLAIN SELECT {call} FROM s"))


@pytest.mark.parametrize("kind", ["ordered", "watermarked", "latent"])
@settings(max_examples=tries(20), deadline=None, phases=PHASES)
@given(
    calls=st.lists(st.sampled_from(BASE), min_size=1, max_size=2, unique=True),
    by=st.sampled_from(["", "GROUP BY k", "GROUP BY k, name"]),
    seed=st.integers(0, 10_000),
    shards=st.sampled_from([1, 3]),
    page=st.sampled_from([1, 3, 8192]),
    many=MANY,
)
def test_base_versions_return_rows_as_they_read(
    kind: str, calls: list[str], by: str, seed: int, shards: int, page: int, many: int
) -> None:
    query = f"SELECT ts, k, {', '.join(CALLS[call] for call in calls)} FROM s {by}"
    options = Options(shards=shards, page_rows=page)
    with patch.object(binding, "recognised", compiled), patch.object(row_frames, "MANY", many):
        found, meant = results_of(query, kind, rows_of(seed, kind), options, seed, before=PROGRAMS)
    assert found == meant


@pytest.mark.parametrize(
    ("call", "bounded"),
    [
        ("total_of(v) OVER (PARTITION BY k RANGE 5 PRECEDING)", True),
        ("total_of(v) OVER (PARTITION BY k RANGE 5 PRECEDING ACTIVE EXPIRATION)", True),
        ("total(v) OVER (PARTITION BY k RANGE 50 PRECEDING SLIDE 10)", True),
        ("total(v) OVER (PARTITION BY k RANGE 5 PRECEDING SLIDE 10)", True),
        ("total(v) OVER (PARTITION BY k RANGE 5 PRECEDING)", False),
        ("total_of(v) OVER (PARTITION BY k ROWS 5 PRECEDING)", False),
        ("avg(w) OVER (PARTITION BY k RANGE 5 PRECEDING)", False),
    ],
)
def test_the_contract_says_whether_time_bounds_the_state(call: str, bounded: bool) -> None:
    mill = LocalMill(Options(shards=1, contracts="off"))
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT, w DOUBLE) ORDER BY ts")
    mill.execute(PROGRAMS)
    mill.execute(
        "CREATE AGGREGATE total_of(v INT) : INT { TABLE t(s INT); INITIALIZE: { INSERT INTO t VALUES (v); } "
        "ITERATE: { UPDATE t SET s = s + v; } TERMINATE: { INSERT INTO RETURN SELECT s FROM t; } }"
    )
    with patch.object(binding, "recognised", compiled):
        mill.add_query("q", f"SELECT ts, k, {call} FROM s")
    assert ("contract: bounded" in str(mill.execute("EXPLAIN CONTRACT q"))) == bounded
    mill.insert("s", [(n, n, 1, 1.0) for n in range(500)])
    mill.insert("s", [(10_000, 0, 1, 1.0)])
    mill.batch()
    assert (mill.state_rows("q") < 10) == bounded
