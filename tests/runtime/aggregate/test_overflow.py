"""Sums at the limits: only the final sum of a group counts, for any cut into pages, panes and partial results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.aggregate.reduction import true_sum
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.windower import tumbling
from millstream.errors import OutOfRange
from millstream.runtime.aggregate.bucket import close_windows, drop_idle_bounds
from millstream.runtime.operator.contract import Input, Operator
from tests.runtime.aggregate.test_window_aggregate import paned, regular
from tests.tries import tries

LEAST, MOST = -(1 << 63), (1 << 63) - 1
SCHEMA = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), ("v", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
TOTAL = (("total", "SUM", "v", Type.BIGINT),)
VALUES = st.sampled_from(
    [LEAST, LEAST + 1, -1, 0, 1, 1 << 32, -(1 << 32), 1 << 62, MOST - 1, MOST, None]
) | st.integers(LEAST, MOST)
TUPLES = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1, 2, 10**9]), VALUES), min_size=1, max_size=24)


def page(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema={a.name: a.type.polars for a in SCHEMA}, orient="row")
    return frame.with_columns(pl.col("ts").alias(TS))


def run(operators: Sequence[Operator], pages: Sequence[pl.DataFrame]) -> list[dict[str, Any]]:
    """Run the pages through a chain of operators, then the end of the stream. A result that does not fit is the
    reason."""
    found: list[dict[str, Any]] = []
    inputs = [*(Input(each) for each in pages), Input(bound=FOREVER)]
    for given_ in inputs:
        for operator in operators:
            output = operator.process([given_])
            given_ = Input(output.rows, output.punctuations, given_.bound)
        if given_.rows is not None:
            reasons = [{}] * given_.rows.height if output.exceeding is None else output.exceeding.to_dicts()
            for row, why in zip(given_.rows.to_dicts(), reasons, strict=True):
                found.append(row | {name: reason for name, reason in why.items() if reason is not None})
    return found


def expected(rows: Sequence[tuple[Any, ...]], range_: int, slide: int) -> dict[tuple[int, int], int | None]:
    sums: dict[tuple[int, int], int | None] = {}
    for ts, key, value in rows:
        for end in range(-40, 60):
            if end % slide == 0 and end - range_ <= ts < end:
                before = sums.setdefault((end, key), None)
                sums[end, key] = before if value is None else (before or 0) + value
    return sums


@settings(max_examples=tries(200))
@given(TUPLES, st.randoms(use_true_random=False), st.sampled_from([(10, 10), (10, 5), (6, 4)]), st.booleans())
def test_only_the_final_sum_counts(
    rows: list[tuple[Any, ...]], random: Random, window: tuple[int, int], panes: bool
) -> None:
    range_, slide = window
    random.shuffle(rows)
    cuts = sorted({0, len(rows), *(random.randint(0, len(rows)) for _ in range(3))})
    pages = [page(rows[start:end]) for start, end in pairwise(cuts)]
    make = paned if panes else lambda *given: (regular(*given),)
    operators = make(SCHEMA, range_, slide, ("k",), TOTAL)
    wanted = expected(rows, range_, slide)
    fitting = {
        (end, key): total
        if total is None or LEAST <= total <= MOST
        else f"SUM(v) does not fit BIGINT: {total}, group (k = {key}), window [{end - range_}, {end})"
        for (end, key), total in wanted.items()
    }
    assert {(row["window_end"], row["k"]): row["total"] for row in run(operators, pages)} == fitting


@given(st.lists(st.integers(LEAST, MOST), max_size=9))
def test_the_true_sum_follows_from_the_wrapped_one(values: list[int]) -> None:
    wrapped = (sum(values) - LEAST) % (1 << 64) + LEAST
    assert true_sum(wrapped, sum(value >> 32 for value in values)) == sum(values)


def test_a_group_without_a_window() -> None:
    operator = regular(SCHEMA, None, None, ("k",), TOTAL)
    (row,) = run([operator], [page([(1, 1, MOST)]), page([(2, 1, 1)])])
    assert row["total"] == f"SUM(v) does not fit BIGINT: {MOST + 1}, group (k = 1)"


def test_windows_at_the_limits_of_a_column() -> None:
    counts = (("n", "COUNT", None, Type.BIGINT),)
    for value in (LEAST, MOST):
        with pytest.raises(OutOfRange, match="of the window of time"):
            run([regular(SCHEMA, 10, 5, (), counts, "v")], [page([(1, 1, value)])])
    # RANGE < SLIDE: a value near the limit is in its window, or in none.
    rows = run([regular(SCHEMA, 3, 10, (), counts, "v")], [page([(1, 1, MOST - 18), (1, 1, MOST - 14)])])
    end = (MOST - 18) // 10 * 10 + 10
    assert [(row["window_end"], row["n"]) for row in rows] == [(end, (MOST - 18) % 10 // 7 + (MOST - 14) % 10 // 7)]


def test_a_bound_below_all_windows_closes_none() -> None:
    bounds = Punctuations.from_column("v", "<", pl.Series([LEAST + 3], dtype=pl.Int64))
    assert drop_idle_bounds(bounds, "v", tumbling(10), LEAST).end == LEAST
    assert not len(close_windows(bounds, "v", tumbling(10), "window_end", pl.Int64()))


def test_windows_that_end_after_the_last_timestamp() -> None:
    schema = Schema.of(("ts", Type.TIMESTAMP), ("v", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    last = 253_402_300_799_999_999
    frame = pl.DataFrame({"ts": pl.Series([last]).cast(pl.Datetime("us")), "v": [1], TS: [last]})
    operator = regular(schema, 10**9, 10**9, (), (("n", "COUNT", None, Type.BIGINT),))
    operator.process([Input(frame)])
    output = operator.process([Input(bound=FOREVER)])
    assert output.rows is not None and output.exceeding is not None
    assert output.rows.get_column("n").to_list() == [1]
    reason = f"the end of a window is out of range for TIMESTAMP: {253_402_301 * 10**9} microseconds"
    assert output.exceeding.to_dicts() == [{"window_end": reason}]
