"""Sketches: how far off they are, and that neither the order nor the parts that they are made of change a result."""

from __future__ import annotations

import itertools
import math
import random
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.aggregate import sketches
from millstream.algebra.aggregate.sketches import added, counters, distinct, hyperloglog, quantile, united
from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries


@pytest.mark.parametrize("count", [1, 10, 100, 1_000, 10_000, 300_000])
def test_distinct_values_are_counted_to_some_per_cent(count: int) -> None:
    for start in (0, 10**12, -(10**15)):
        values = pl.int_range(start, start + count, eager=True)
        found = distinct(hyperloglog(pl.concat([values, values])))
        assert abs(found - count) <= (0 if count <= 100 else 0.06 * count)
        assert distinct(hyperloglog(values.cast(pl.String))) == pytest.approx(count, rel=0.06)


@settings(max_examples=tries(60), deadline=None)
@given(st.integers(0, 3_000), st.integers(1, 8), st.integers(0, 1 << 30))
def test_parts_and_order_change_nothing(count: int, parts: int, seed: int) -> None:
    draw = random.Random(seed)
    values = [
        draw.gauss(0, 1e3) if draw.random() < 0.9 else draw.choice([0.0, math.inf, -math.inf]) for _ in range(count)
    ]
    for made, merged, result in ((hyperloglog, united, distinct), (counters, added, lambda each: quantile(each, 0.3))):
        whole = result(made(pl.Series(values, dtype=pl.Float64)))
        draw.shuffle(values)
        cuts = sorted(draw.randint(0, count) for _ in range(parts - 1))
        pieces = [values[a:b] for a, b in zip([0, *cuts], [*cuts, count], strict=True)]
        held = [made(pl.Series(piece, dtype=pl.Float64)) for piece in pieces]
        while len(held) > 1:
            taken = [held.pop(draw.randrange(len(held))) for _ in range(min(len(held), draw.randint(2, 4)))]
            held.append(merged(taken) if len(taken) > 1 else taken[0])
        assert result(held[0]) == whole


@settings(max_examples=tries(100), deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_a_quantile_is_off_by_one_per_cent(values: list[float], share: float) -> None:
    found = quantile(counters(pl.Series(values, dtype=pl.Float64)), share)
    ranked = np.sort(np.array(values))  # NaN comes last
    true = float(ranked[max(0, math.ceil(share * len(values)) - 1)])
    assert found is not None
    if math.isnan(true) or math.isinf(true) or true == 0:
        assert found == true or (math.isnan(found) and math.isnan(true))
    else:
        assert found == pytest.approx(true, rel=0.0101)


def test_of_nothing() -> None:
    none = pl.Series([], dtype=pl.Float64)
    assert distinct(hyperloglog(none)) == 0
    assert quantile(counters(none), 0.5) is None


@settings(max_examples=tries(25), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2), st.integers(0, 5_000) | st.none()), max_size=80),
    st.integers(1, 30),
    st.sampled_from([Options(), Options(shards=3, page_rows=4), Options(paned=False), Options(page_rows=1)]),
    st.sampled_from([0, 1, 3, 256]),
)
def test_windows(rows: list[tuple[int, int, int | None]], every: int, options: Options, small: int) -> None:
    with patch.object(sketches, "SMALL", small):
        _check_windows(rows, every, options)


def _check_windows(rows: list[tuple[int, int, int | None]], every: int, options: Options) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    mill = LocalMill(options.model_copy())
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts")
    calls = "APPROX_DISTINCT(v) AS d, APPROX_QUANTILE(v, 0.5) AS m"
    mill.add_query("q", f"SELECT window_end, k, {calls} FROM s [RANGE 20 SLIDE 5] GROUP BY k")
    for start in range(0, len(rows), every):
        mill.insert("s", rows[start : start + every])
        mill.batch()
    mill.insert("s", [(1000, 9, 0)])
    mill.batch()
    found = {tuple(row[:2]): row[2:] for row in mill.take_rows("q").rows()}
    windows = {(end, k) for ts, k, _ in rows for end in range((ts // 5 + 1) * 5, ts + 21, 5)}
    assert found.keys() == windows
    for (end, k), (d, m) in found.items():
        values = sorted(v for ts, key, v in rows if key == k and end - 20 <= ts < end and v is not None)
        assert d == len(set(values))
        assert (m is None) == (not values)
        assert not values or m == pytest.approx(values[max(0, math.ceil(len(values) / 2) - 1)], rel=0.0101)


@settings(max_examples=tries(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, "", "a", "b", "c", "é"]), st.floats() | st.none())),
    st.sampled_from([0, 2, 256]),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
def test_cuts_and_shards_change_nothing(
    rows: list[tuple[int, str | None, float | None]], small: int, cuts: list[int]
) -> None:
    calls = "APPROX_DISTINCT(t) AS d, APPROX_DISTINCT(x) AS e, APPROX_QUANTILE(x, 0.4) AS m"
    found = []
    with patch.object(sketches, "SMALL", small):
        for shards, sizes in ((1, [len(rows) + 1]), (3, cuts)):
            mill = LocalMill(Options(shards=shards))
            mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, t VARCHAR, x DOUBLE) ORDER BY ts")
            mill.add_query("q", f"SELECT window_end, k, {calls} FROM s [RANGE 20 SLIDE 10] GROUP BY k")
            left = [(at, *row) for at, row in enumerate(rows)] + [(1000, 0, None, None)]
            for size in itertools.cycle(sizes):
                mill.insert("s", left[:size])
                mill.batch()
                left = left[size:]
                if not left:
                    break
            found.append(sorted(map(repr, mill.take_rows("q").rows())))
    assert found[0] == found[1]
