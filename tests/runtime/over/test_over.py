"""Running aggregates against their tuple-at-a-time reference, for every frame, kind of time, cut and shard count."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.reference import plan as reference
from tests.time_kinds import KINDS
from tests.tries import tries

NAN = float("nan")
CALLS = (
    """
COUNT(*); COUNT(v); COUNT(name); SUM(v); AVG(v); MIN(v); MAX(v); SUM(w); AVG(w); MIN(w); MAX(w); MIN(name); MAX(name)
VARIANCE(v); STDDEV_POP(w); FIRST_VALUE(v); LAST_VALUE(name); BOOL_OR(v > 0); MIN(ts); LAST(ts)
MEDIAN(v); QUANTILE_DISC(name, 0.3); PERCENTILE_CONT(v, 0.9); ARRAY_AGG(v); STRING_AGG(name, '-')
COUNT(DISTINCT v); SUM(DISTINCT v); COUNT(DISTINCT name); ARRAY_AGG(DISTINCT v)
SUM(v) FILTER (WHERE k = 1); COUNT(*) FILTER (WHERE name = 'x'); FIRST(v) FILTER (WHERE w > 0)
MAX(name) FILTER (WHERE v = 1); AVG(w) FILTER (WHERE v = 40); VAR_POP(v) FILTER (WHERE k = 1)
MEDIAN(v) FILTER (WHERE k = 1); COUNT(DISTINCT v) FILTER (WHERE w > 0)
""".strip()
    .replace("\n", "; ")
    .split("; ")
)
FRAMES = [
    "ROWS 0 PRECEDING",
    "ROWS 1 PRECEDING",
    "ROWS 3 PRECEDING",
    "ROWS UNBOUNDED PRECEDING",
    "RANGE 0 PRECEDING",
    "RANGE 3 PRECEDING",
    "RANGE 10 PRECEDING",
    "UNBOUNDED PRECEDING",
    "ROWS 3 PRECEDING SLIDE 2",
    "ROWS 5 PRECEDING SLIDE 4",
    "ROWS 1 PRECEDING SLIDE 3",
    "ROWS 0 PRECEDING SLIDE 2",
    "ROWS UNBOUNDED PRECEDING SLIDE 3",
    "RANGE 5 PRECEDING SLIDE 2",
    "RANGE 3 PRECEDING SLIDE 7",
    "RANGE UNBOUNDED PRECEDING SLIDE 4",
    "RANGE 0 PRECEDING ACTIVE EXPIRATION",
    "RANGE 3 PRECEDING ACTIVE EXPIRATION",
    "RANGE 7 PRECEDING ACTIVE EXPIRATION",
]
PARTITIONS = [
    "",
    "PARTITION BY k ",
    "PARTITION BY name ",
    "PARTITION BY x ",
    "PARTITION BY k, name ",
    "PARTITION BY k + 1 ",
]


def rows_of(seed: int, kind: str) -> list[tuple[Any, ...]]:
    """Tuples in an order that the kind of time allows, from before the epoch."""
    draw = random.Random(seed)
    rows, now = [], -20
    for _ in range(draw.choice([3, 15, 40])):
        now += draw.choice([0, 0, 0, 1, 1, 2, 9])
        ts = now - draw.choice([0, 1, 2]) if kind == "watermarked" else now
        k, name = draw.choice([1, 1, 2, 3, None]), draw.choice(["x", "y", None])
        v, w, x = (
            draw.choice([None, -3, 1, 40]),
            draw.choice([None, 0.5, -0.0, 1e17, 3.0]),
            draw.choice([0.0, NAN, None]),
        )
        rows.append((ts, k, v, w, x, name))
    return rows


def results_of(
    query: str, kind: str, rows: list[tuple[Any, ...]], options: Options, seed: int, before: str = ""
) -> tuple[Counter, Counter]:
    """The rows that a query emits, and those of its reference."""
    mill, chance = LocalMill(options), random.Random(seed)
    columns = "ts BIGINT, k BIGINT, v BIGINT, w DOUBLE, x DOUBLE, name VARCHAR"
    mill.execute(f"CREATE STREAM s ({columns}) {KINDS[kind].replace('PUNCTUATED ON (k #)', '')}")
    mill.execute(before)
    mill.add_query("q", query)
    found: Counter = Counter()
    last = {row[1]: place for place, row in enumerate(rows)}
    for place, row in enumerate(rows):
        mill.insert("s", [row])
        if row[1] is not None and place == last[row[1]]:
            mill.feed_line("s", f"[*, {row[1]}, *, *, *, *]")
        if chance.random() < 0.3:
            mill.batch()
            found.update(map(canonical, mill.take_rows("q").rows()))
            if chance.random() < 0.3:
                mill = mill.restarted()
    mill.feed_line("s", "[*, *, *, *, *, *]")
    mill.batch()
    found.update(map(canonical, mill.take_rows("q").rows()))
    plan = mill.queries["q"].plan
    names = ("ts", "k", "v", "w", "x", "name")
    times = [0 if kind == "latent" else row[0] for row in rows]
    given_ = [(dict(zip(names, row, strict=True)), ts) for row, ts in zip(rows, times, strict=True)]
    meant = reference.run(plan, {"s": given_}, {})
    return found, Counter(canonical(tuple(row.values())) for row, _ in meant)


def canonical(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row that compares: fractions are rounded, and NaN equals itself."""
    return tuple(map(_value, row))


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_value, value))
    if not isinstance(value, float):
        return value
    # Short decimals are moved off the middle between two roundings.
    return "NaN" if value != value else float(f"{value * (1 + 3e-12) + 0.0:.8g}")


@pytest.mark.parametrize("kind", ["ordered", "watermarked", "punctuated", "latent"])
@settings(max_examples=tries(12))
@given(
    calls=st.lists(st.sampled_from(CALLS), min_size=1, max_size=3),
    frame=st.sampled_from(FRAMES),
    by=st.sampled_from(PARTITIONS),
    seed=st.integers(0, 10_000),
    shards=st.sampled_from([1, 3]),
    page=st.sampled_from([1, 3, 8192]),
)
def test_results_equal_the_reference(
    kind: str, calls: list[str], frame: str, by: str, seed: int, shards: int, page: int
) -> None:
    items = ", ".join(f"{call} OVER ({by}{frame})" for call in calls)
    query = f"SELECT ts, k, {items} FROM s WHERE v IS NULL OR v > -10"
    found, meant = results_of(query, kind, rows_of(seed, kind), Options(shards=shards, page_rows=page), seed)
    assert found == meant
